// SPDX-License-Identifier: Apache-2.0
#include "mcp/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "mcp/mcp.h"

int mcp_fault(struct mcp_fault *fault, enum mcp_code code, const char *format, ...)
{
    va_list args;

    fault->code = code;
    va_start(args, format);
    (void)vsnprintf(fault->text, sizeof(fault->text), format, args);
    va_end(args);
    return -1;
}

int mcp_fault_version(struct mcp_fault *fault, const char *requested)
{
    (void)snprintf(fault->requested, sizeof(fault->requested), "%s", requested);
    return mcp_fault(fault, MCP_UNSUPPORTED_VERSION, "protocol version '%.60s' is not supported",
                     requested);
}

int mcp_parse(const char *text, size_t len, json_t **ret, struct mcp_fault *fault)
{
    json_error_t why;

    /* A file's content may have a NUL in it. */
    *ret = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    if (*ret)
        return 0;
    return mcp_fault(fault, MCP_PARSE_ERROR, "not valid JSON at byte %d: %s", why.position,
                     why.text);
}

bool mcp_is_id(const json_t *id)
{
    return json_is_number(id) || (json_is_string(id) && json_string_length(id) <= MCP_ID_MAX);
}

static int method_read(const json_t *value, struct mcp_message *ret, struct mcp_fault *fault)
{
    const json_t *method = json_object_get(value, "method");
    const json_t *params = json_object_get(value, "params");

    if (!json_is_string(method))
        return mcp_fault(fault, MCP_INVALID_REQUEST, "'method' must be a text");
    ret->method = json_string_value(method);
    ret->kind = ret->id ? MCP_REQUEST : MCP_NOTIFICATION;
    if (params && !json_is_object(params))
        return mcp_fault(fault, MCP_INVALID_PARAMS, "'params' must be an object");
    ret->params = params;
    return 0;
}

int mcp_message_read(const json_t *value, struct mcp_message *ret, struct mcp_fault *fault)
{
    const char *version = json_string_value(json_object_get(value, "jsonrpc"));
    json_t *id = json_object_get(value, "id");

    *ret = (struct mcp_message){ .id = mcp_is_id(id) ? id : NULL };
    if (!json_is_object(value))
        return mcp_fault(fault, MCP_INVALID_REQUEST, "a message must be an object");
    if (!version || strcmp(version, "2.0") != 0)
        return mcp_fault(fault, MCP_INVALID_REQUEST, "'jsonrpc' must be \"2.0\"");
    if (id && !ret->id)
        return mcp_fault(fault, MCP_INVALID_REQUEST,
                         "'id' must be a number, or a text of at most %d bytes", MCP_ID_MAX);
    if (json_object_get(value, "method"))
        return method_read(value, ret, fault);
    if (!id || (!json_object_get(value, "result") && !json_object_get(value, "error")))
        return mcp_fault(fault, MCP_INVALID_REQUEST, "'method' is missing");
    ret->kind = MCP_RESPONSE;
    return 0;
}

/* JSON-RPC requires null for an unknown id. */
static json_t *id_of(json_t *id)
{
    return id ? json_incref(id) : json_null();
}

json_t *mcp_result(json_t *id, json_t *result)
{
    return json_pack("{s:s, s:o, s:o}", "jsonrpc", "2.0", "id", id_of(id), "result", result);
}

static json_t *fault_data(const struct mcp_fault *fault)
{
    if (fault->code == MCP_MISSING_CAPABILITY)
        return json_pack("{s:{s:{s:{}}}}", "requiredCapabilities", "extensions",
                         MCP_TASKS_EXTENSION);
    if (fault->code != MCP_UNSUPPORTED_VERSION)
        return NULL;
    return json_pack("{s:o, s:o}", "supported", mcp_versions_json(), "requested",
                     json_text(fault->requested));
}

json_t *mcp_failure(json_t *id, const struct mcp_fault *fault)
{
    return json_pack("{s:s, s:o, s:{s:i, s:o, s:o*}}", "jsonrpc", "2.0", "id", id_of(id), "error",
                     "code", (int)fault->code, "message", json_text(fault->text), "data",
                     fault_data(fault));
}

static enum mcp_code code_of(enum err_kind kind)
{
    if (kind == ERR_INVALID)
        return MCP_INVALID_PARAMS;
    return kind == ERR_INTERNAL ? MCP_INTERNAL : MCP_REFUSED;
}

json_t *mcp_failure_of(json_t *id, const struct err *err)
{
    const char *remedy = err_remedy_of(err), *cause = err_cause_name(err->cause);

    return json_pack("{s:s, s:o, s:{s:i, s:o, s:{s:s, s:s*, s:o*, s:b}}}", "jsonrpc", "2.0", "id",
                     id_of(id), "error", "code", (int)code_of(err->kind), "message",
                     json_text(err->msg), "data", "code", err_kind_row(err->kind)->code, "cause",
                     cause, "remedy", remedy ? json_text(remedy) : NULL, "retryable",
                     err_is_retryable(err));
}
