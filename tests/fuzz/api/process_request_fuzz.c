// SPDX-License-Identifier: Apache-2.0
/* The JSON bodies about processes: whatever the bytes, a typed refusal or what the host may rely
 * on. */
#include <stdint.h>

#include "api/message/process_spec.h"
#include "fuzz/api/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void start_check(const json_t *object, struct arena *arena)
{
    struct msg_start_request request;
    struct process_spec spec;
    struct err err = { 0 };
    int r;

    if (!decode(SCHEMA(msg_start_request, &request), object, arena))
        return;
    sandbox_check(request.sandbox_id);
    word_check(request.idempotency_key, PROCESS_TAG_MAX);
    r = process_spec_fill(request.process, arena, &spec, &err);
    refusal_check(r, &err);
    if (r < 0)
        return;
    word_check(spec.tag ? spec.tag : "", PROCESS_TAG_MAX);
    assert(*spec.args[0] && !spec.is_detached && !spec.args[request.process->args_count]);
    assert(!spec.has_terminal || (spec.rows && spec.columns));
}

static void attach_check(const json_t *object, struct arena *arena)
{
    struct msg_attach_request request;

    if (!decode(SCHEMA(msg_attach_request, &request), object, arena))
        return;
    sandbox_check(request.sandbox_id);
    assert(*request.process_id);
}

static void wait_check(const json_t *object, struct arena *arena)
{
    struct msg_wait_request request;

    if (!decode(SCHEMA(msg_wait_request, &request), object, arena))
        return;
    sandbox_check(request.sandbox_id);
    assert(*request.process_id && request.timeout_ms <= INT64_MAX / 1000000);
}

static void list_check(const json_t *object, struct arena *arena)
{
    struct msg_list_processes_request request;

    if (!decode(SCHEMA(msg_list_processes_request, &request), object, arena))
        return;
    sandbox_check(request.sandbox_id);
    word_check(request.tag, PROCESS_TAG_MAX);
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
    start_check(object, &arena);
    attach_check(object, &arena);
    wait_check(object, &arena);
    list_check(object, &arena);
    return 0;
}
