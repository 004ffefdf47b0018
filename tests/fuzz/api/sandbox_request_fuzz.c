// SPDX-License-Identifier: Apache-2.0
/* The JSON bodies about sandboxes and snapshots: whatever the bytes, a typed refusal or what the
 * host may rely on. */
#include <stdint.h>

#include "api/message/process_spec.h"
#include "fuzz/api/decode.h"
#include "host/sandbox/sandbox.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void create_check(const json_t *object, struct arena *arena)
{
    struct msg_create_sandbox_request request;

    if (!decode(SCHEMA(msg_create_sandbox_request, &request), object, arena))
        return;
    if (*request.name)
        sandbox_check(request.name);
    assert(!*request.template || is_name(request.template));
    assert(!*request.runtime || is_name(request.runtime));
    assert(request.labels_count <= SANDBOX_LABELS_MAX);
    for (size_t i = 0; i < request.labels_count; i++)
        assert(*request.labels[i].key && strlen(request.labels[i].key) <= LABEL_KEY_MAX &&
               strlen(request.labels[i].value) <= LABEL_VALUE_MAX &&
               !strpbrk(request.labels[i].value, "\n\r\t\x1b"));
    assert(request.volumes_count <= SANDBOX_MOUNTS_MAX);
    for (size_t i = 0; i < request.volumes_count; i++)
        assert(*request.volumes[i].volume && *request.volumes[i].path);
    assert(request.ttl_ms <= INT64_MAX / 1000000 && request.idle_timeout_ms <= INT64_MAX / 1000000);
    word_check(request.idempotency_key, SANDBOX_KEY_MAX);
}

static void fork_check(const json_t *object, struct arena *arena)
{
    struct msg_fork_request request;

    if (!decode(SCHEMA(msg_fork_request, &request), object, arena))
        return;
    sandbox_check(request.sandbox_id);
    snapshot_check(request.from);
    assert(request.count >= 1 && request.count <= FORK_MAX);
}

static void snapshot_request_check(const json_t *object, struct arena *arena)
{
    struct msg_create_snapshot_request request;

    if (!decode(SCHEMA(msg_create_snapshot_request, &request), object, arena))
        return;
    sandbox_check(request.sandbox_id);
    assert(is_handle(request.name, SNAPSHOT_NAME_MAX));
    assert(!*request.kind || strcmp(request.kind, "named") == 0 ||
           strcmp(request.kind, "tool") == 0);
}

static void diff_check(const json_t *object, struct arena *arena)
{
    struct msg_diff_request request;

    if (!decode(SCHEMA(msg_diff_request, &request), object, arena))
        return;
    sandbox_check(request.sandbox_id);
    snapshot_check(request.from);
    snapshot_check(request.to);
}

static void process_check(const json_t *object, struct arena *arena)
{
    struct msg_run_request request;
    struct process_spec spec;
    struct err err = { 0 };
    int r;

    if (!decode(SCHEMA(msg_run_request, &request), object, arena))
        return;
    r = process_spec_fill(request.process, arena, &spec, &err);
    refusal_check(r, &err);
    assert(r < 0 || *spec.args[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(MESSAGE_BYTES_MAX);
    cleanup_json json_t *object = NULL;
    struct err err = { 0 };

    if (json_parse_object((const char *)data, size, &object, &err) < 0) {
        assert(err.kind == ERR_INVALID);
        return 0;
    }
    create_check(object, &arena);
    fork_check(object, &arena);
    snapshot_request_check(object, &arena);
    diff_check(object, &arena);
    process_check(object, &arena);
    return 0;
}
