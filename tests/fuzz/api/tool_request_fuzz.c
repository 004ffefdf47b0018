// SPDX-License-Identifier: Apache-2.0
/* The JSON body of a tool's call: whatever the bytes, a typed refusal or what the host may rely on.
 */
#include <stdint.h>

#include "fuzz/api/decode.h"
#include "toolbox/tool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void request_check(const struct msg_execute_tool_request *request)
{
    sandbox_check(request->sandbox_id);
    assert(*request->tool && strlen(request->tool) <= 64);
    word_check(request->tool, 64);
    word_check(request->tool_call_id, TOOL_ID_MAX);
    assert(!request->params || json_is_object(request->params));
    assert(request->timeout_ms <= INT64_MAX / 1000000);
    assert(request->max_output_tokens <= TOOL_OUTPUT_TOKENS_MAX);
    assert(!request->resources ||
           (request->resources->memory_bytes <= 1ULL << 40 && request->resources->cpus >= 0 &&
            request->resources->cpus <= 256));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(MESSAGE_BYTES_MAX);
    struct msg_execute_tool_request request;
    cleanup_json json_t *object = NULL;
    struct err err = { 0 };

    if (json_parse_with_nul((const char *)data, size, &object, &err) < 0) {
        assert(err.kind == ERR_INVALID && *err.msg && !strpbrk(err.msg, "\n\r\033"));
        return 0;
    }
    if (decode(SCHEMA(msg_execute_tool_request, &request), object, &arena))
        request_check(&request);
    return 0;
}
