// SPDX-License-Identifier: Apache-2.0
#include "api/message/tool_request.h"

#include <stdint.h>
#include <string.h>

#include "api/message/fields.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"

enum { CPUS_MAX = 256, TOOL_NAME_MAX = 64 };

static const uint64_t memory_max = 1ULL << 40;

static int cpus_get(const json_t *resources, uint32_t *ret, struct err *err)
{
    const json_t *value = json_field(resources, "cpus");
    double cpus = json_number_value(value);

    if (value && (!json_is_number(value) || !(cpus >= 0 && cpus <= CPUS_MAX)))
        return err_set(err, ERR_INVALID, "field 'resources.cpus' must be a number from 0 to %d",
                       CPUS_MAX);
    *ret = (uint32_t)(cpus * 1000);
    if (cpus > 0 && *ret == 0)
        *ret = 1;
    return 0;
}

static int resources_get(const json_t *message, struct tool_request *request, struct err *err)
{
    static const char *const fields[] = { "cpus", "memoryBytes", NULL };
    const json_t *resources = NULL;
    int r = json_get_object(message, "resources", &resources, err);

    if (r < 0 || !resources)
        return r;
    r = json_only_fields(resources, fields, err);
    if (r == 0)
        r = cpus_get(resources, &request->cpus_milli, err);
    if (r == 0)
        r = json_get_u64(resources, "memoryBytes", &request->memory_bytes, err);
    if (r == 0 && request->memory_bytes > memory_max)
        return err_set(err, ERR_INVALID, "field 'resources.memoryBytes' is more than a TiB");
    return r;
}

/* A content may have a NUL inside; what is taken for a C text would be cut there. */
static int nul_check(const json_t *message, const char *name, struct err *err)
{
    const json_t *value = json_field(message, name);

    if (json_is_string(value) && strlen(json_string_value(value)) != json_string_length(value))
        return err_set(err, ERR_INVALID, "field '%s' has a NUL inside", name);
    return 0;
}

static int names_check(const json_t *message, struct err *err)
{
    static const char *const names[] = { "sandboxId", "tool", "toolCallId" };
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(names); i++)
        r = nul_check(message, names[i], err);
    return r;
}

/* Absent is not the same as false here. */
static int snapshot_get(const json_t *message, int *ret, struct err *err)
{
    bool is_wanted = false;
    int r = json_get_bool(message, "snapshot", &is_wanted, err);

    *ret = !json_field(message, "snapshot") ? -1 : is_wanted;
    return r;
}

static int limits_get(const json_t *message, struct tool_request *request, struct err *err)
{
    int r = field_duration(message, "timeoutMs", &request->timeout_ms, err);

    if (r == 0)
        r = json_get_u64(message, "maxOutputTokens", &request->max_output_tokens, err);
    if (r == 0 && request->max_output_tokens > TOOL_OUTPUT_TOKENS_MAX)
        return err_set(err, ERR_INVALID, "field 'maxOutputTokens' is more than %d",
                       TOOL_OUTPUT_TOKENS_MAX);
    return r < 0 ? r : resources_get(message, request, err);
}

int tool_call_request_parse(const json_t *message, bool is_read_only, struct tool_call_request *ret,
                            struct err *err)
{
    static const char *const fields[] = { "sandboxId",       "tool",      "params",  "toolCallId",
                                          "timeoutMs",       "resources", "changed", "snapshot",
                                          "maxOutputTokens", NULL };
    struct tool_request *request = &ret->request;
    int r = json_only_fields(message, fields, err);

    *request = (struct tool_request){ .is_read_only = is_read_only };
    if (r == 0)
        r = names_check(message, err);
    if (r == 0)
        r = field_sandbox(message, &ret->sandbox, err);
    if (r == 0)
        r = field_word(message, "tool", TOOL_NAME_MAX, &request->name, err);
    if (r == 0 && !request->name)
        r = err_set(err, ERR_INVALID, "field 'tool' is missing");
    if (r == 0)
        r = json_get_object(message, "params", &request->params, err);
    if (r == 0)
        r = field_word(message, "toolCallId", TOOL_ID_MAX, &request->call_id, err);
    if (r == 0)
        r = limits_get(message, request, err);
    if (r == 0)
        r = json_get_bool(message, "changed", &request->wants_changed, err);
    return r < 0 ? r : snapshot_get(message, &request->snapshot, err);
}
