/* What the server's test wants of the counters of calls. */
#pragma once

#include <inttypes.h>

#include "api/route.h"
#include "http/call_stats.h"
#include "unit/http/client.h"

static void calls_are_counted_by_how_they_ended(void)
{
    cleanup_with(buf_done) struct buf lines = BUF_INIT(REPLY_BYTES_MAX);
    const size_t health = route_index(route_find("/holt.v1.HostService/Health"));
    const size_t run = route_index(route_find("/holt.v1.SandboxService/Run"));
    struct call_stats before, after, streams[2];
    uint64_t calls = 0;

    call_stats_get(health, &before);
    call_stats_get(run, &streams[0]);
    expect("HostService/Health", "{}", "200", "");
    expect("HostService/Health", "{\"x\":1}", "400", "");
    stream("SandboxService/Run", "{\"process\":{\"args\":[\"talk\"]}}", &lines);
    stream("SandboxService/Run", "{\"process\":{\"args\":[\"broken\"]}}", &lines);
    call_stats_get(health, &after);
    call_stats_get(run, &streams[1]);
    CHECK(after.by_kind[ERR_NONE] == before.by_kind[ERR_NONE] + 1);
    CHECK(after.by_kind[ERR_INVALID] == before.by_kind[ERR_INVALID] + 1);
    CHECK(streams[1].by_kind[ERR_NONE] == streams[0].by_kind[ERR_NONE] + 1);
    CHECK(streams[1].by_kind[ERR_EXHAUSTED] == streams[0].by_kind[ERR_EXHAUSTED] + 1);
    CHECK(after.total_ns > before.total_ns);
    for (size_t i = 0; i <= CALL_STATS_BUCKETS; i++)
        calls += after.buckets[i] - before.buckets[i];
    CHECK(calls == 2, "(%" PRIu64 ")", calls);
}
