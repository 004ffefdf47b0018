/* What sandboxes use now. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/sandbox/info.h"

struct err;
struct host;

/* Of one that does not run, all but the storage is 0. */
struct sandbox_stats {
    char id[SANDBOX_ID_MAX];
    char name[SANDBOX_NAME_MAX + 1];
    enum sandbox_state state;
    uint64_t taken_ms; /* of the monotonic clock */
    uint64_t age_ms;   /* since it was created */
    uint64_t cpu_us;   /* since its machine was started; it begins anew when that does */
    uint64_t memory_bytes;
    uint64_t cache_bytes;         /* of files, that the kernel can have back; not in the above */
    uint32_t pids;                /* without those of Holt itself */
    uint32_t processes;           /* started by clients, and not over */
    struct sandbox_limits limits; /* that hold, the daemon's defaults among them; 0: none */
    uint64_t space_used;          /* in storage; 0 when it was not asked for */
    uint64_t quota_bytes;         /* 0: none */
};

/* What a sandbox that was asked for with these limits may use: the daemon's defaults and what the
 * machine has are among it. */
void sandbox_limits_in_force(struct host *host, const struct sandbox_limits *asked,
                             struct sandbox_limits *ret);

/* Those with these ids or names, in this order, or all of them (count 0), oldest first. */
struct stats_query {
    const char *const *ids;
    size_t count;
    bool wants_space; /* the storage is asked: that may take a while */
};

/* The caller frees *ret. ERR_NOT_FOUND. */
int sandbox_list_stats(struct host *host, const struct stats_query *query,
                       struct sandbox_stats **ret, size_t *ret_count, struct err *err);
