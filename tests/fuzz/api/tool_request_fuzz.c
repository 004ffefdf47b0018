// SPDX-License-Identifier: Apache-2.0
/* The JSON body of a tool's call: whatever the bytes, a typed refusal or what the host may rely on.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "api/message/fields.h"
#include "api/message/tool_request.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "host/sandbox/info.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void request_check(const struct tool_request *request)
{
    assert(*request->name && strlen(request->name) <= 64 && !strpbrk(request->name, "\n\r\033"));
    assert(!request->params || json_is_object(request->params));
    assert(!request->call_id || (*request->call_id && strlen(request->call_id) <= TOOL_ID_MAX));
    assert(request->timeout_ms <= INT64_MAX / 1000000);
    assert(request->max_output_tokens <= TOOL_OUTPUT_TOKENS_MAX);
    assert(request->memory_bytes <= 1ULL << 40 && request->cpus_milli <= 256000);
    assert(request->snapshot >= -1 && request->snapshot <= 1);
    assert(request->is_read_only);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_json json_t *object = NULL;
    struct tool_call_request wish;
    struct err err = { 0 };

    if (json_parse_with_nul((const char *)data, size, &object, &err) < 0 ||
        tool_call_request_parse(object, true, &wish, &err) < 0) {
        assert(err.kind == ERR_INVALID && *err.msg && !strpbrk(err.msg, "\n\r\033"));
        return 0;
    }
    assert(is_handle(wish.sandbox, SANDBOX_NAME_MAX) && !strstr(wish.sandbox, ".."));
    request_check(&wish.request);
    return 0;
}
