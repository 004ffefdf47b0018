// SPDX-License-Identifier: Apache-2.0
#include "mcp/stateless.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/base64.h"
#include "mcp/mcp.h"
#include "mcp/message.h"
#include "mcp/tools.h"

#define META "io.modelcontextprotocol/"
#define META_VERSION META "protocolVersion"
#define META_CAPABILITIES META "clientCapabilities"
#define META_CLIENT META "clientInfo"
#define META_LEVEL META "logLevel"
#define META_SERVER META "serverInfo"
#define META_SUBSCRIPTION META "subscriptionId"

enum {
    LIST_TTL_MS = 5 * 60 * 1000, /* the tools are those of the daemon's version */
    NAME_MAX_BYTES = 8192,
};

static const json_t *meta_of(const json_t *params)
{
    return json_object_get(params, "_meta");
}

/* Revisions are dates, so their order is that of texts. */
static bool is_stateless_version(const char *version)
{
    return version && strcmp(version, MCP_STATELESS_VERSION) >= 0;
}

static bool is_stateless_method(const char *method)
{
    static const char *const methods[] = { "server/discover", "subscriptions/listen", "tasks/get",
                                           "tasks/update", "tasks/cancel" };

    for (size_t i = 0; method && i < ARRAY_SIZE(methods); i++)
        if (strcmp(methods[i], method) == 0)
            return true;
    return false;
}

static bool message_is_stateless(const json_t *message)
{
    return json_object_get(meta_of(json_object_get(message, "params")), META_VERSION) ||
           is_stateless_method(json_string_value(json_object_get(message, "method")));
}

bool mcp_is_stateless(const json_t *body, const char *version_header)
{
    bool is_stateless = is_stateless_version(version_header) || message_is_stateless(body);

    for (size_t i = 0; !is_stateless && i < json_array_size(body); i++)
        is_stateless = message_is_stateless(json_array_get(body, i));
    return is_stateless;
}

/* --- _meta ------------------------------------------------------------------------------------ */

static bool is_level(const json_t *level)
{
    static const char *const levels[] = { "debug", "info",     "notice", "warning",
                                          "error", "critical", "alert",  "emergency" };
    const char *text = json_string_value(level);

    for (size_t i = 0; text && i < ARRAY_SIZE(levels); i++)
        if (strcmp(levels[i], text) == 0)
            return true;
    return false;
}

static int meta_check(const json_t *meta, struct mcp_fault *fault)
{
    const json_t *version = json_object_get(meta, META_VERSION);
    const json_t *capabilities = json_object_get(meta, META_CAPABILITIES);
    const json_t *client = json_object_get(meta, META_CLIENT);
    const json_t *level = json_object_get(meta, META_LEVEL);

    if (!json_is_object(meta))
        return mcp_fault(fault, MCP_INVALID_PARAMS,
                         "'_meta' is missing: every request needs " META_VERSION
                         " and " META_CAPABILITIES);
    if (!json_is_string(version))
        return mcp_fault(fault, MCP_INVALID_PARAMS, "'_meta' needs the text " META_VERSION);
    if (!json_is_object(capabilities))
        return mcp_fault(fault, MCP_INVALID_PARAMS, "'_meta' needs the object " META_CAPABILITIES);
    if (client && (!json_is_string(json_object_get(client, "name")) ||
                   !json_is_string(json_object_get(client, "version"))))
        return mcp_fault(fault, MCP_INVALID_PARAMS,
                         META_CLIENT " must have the texts name and version");
    if (level && !is_level(level))
        return mcp_fault(fault, MCP_INVALID_PARAMS, META_LEVEL " must be that of a log message");
    return 0;
}

/* --- headers ---------------------------------------------------------------------------------- */

/* Blanks around the value of a header are not part of it. */
static size_t value_trim(const char **text)
{
    size_t len;

    *text += strspn(*text, " \t");
    len = strlen(*text);
    while (len > 0 && strchr(" \t", (*text)[len - 1]))
        len--;
    return len;
}

static bool value_equals(const char *header, const char *text)
{
    size_t len = value_trim(&header);

    return len == strlen(text) && memcmp(header, text, len) == 0;
}

/* A name that is not plain ASCII comes as =?base64?...?=. */
static bool name_equals(const char *header, const json_t *name)
{
    static const char head[] = "=?base64?", tail[] = "?=";
    cleanup_with(buf_done) struct buf decoded = BUF_INIT(NAME_MAX_BYTES);
    size_t len = value_trim(&header), wrap = strlen(head) + strlen(tail);

    if (len < wrap || memcmp(header, head, strlen(head)) != 0 ||
        memcmp(header + len - strlen(tail), tail, strlen(tail)) != 0)
        return len == json_string_length(name) && memcmp(header, json_string_value(name), len) == 0;
    return base64_decode(&decoded, header + strlen(head), len - wrap) == 0 &&
           decoded.len == json_string_length(name) &&
           (decoded.len == 0 || memcmp(decoded.data, json_string_value(name), decoded.len) == 0);
}

/* The parameter that Mcp-Name repeats; NULL: none. */
static const char *name_field(const char *method)
{
    static const char *const fields[][2] = {
        { "tools/call", "name" },  { "prompts/get", "name" },    { "resources/read", "uri" },
        { "tasks/get", "taskId" }, { "tasks/update", "taskId" }, { "tasks/cancel", "taskId" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (strcmp(fields[i][0], method) == 0)
            return fields[i][1];
    return NULL;
}

static int name_check(const struct mcp_message *message, const char *header,
                      struct mcp_fault *fault)
{
    const char *field = name_field(message->method);
    const json_t *name = field ? json_object_get(message->params, field) : NULL;

    if (!json_is_string(name))
        return 0;
    if (!header)
        return mcp_fault(fault, MCP_HEADER_MISMATCH,
                         "the header Mcp-Name is missing; it repeats params.%s", field);
    if (!name_equals(header, name))
        return mcp_fault(fault, MCP_HEADER_MISMATCH,
                         "the header Mcp-Name '%.60s' is not params.%s '%.60s'", header, field,
                         json_string_value(name));
    return 0;
}

static int headers_check(const struct mcp_message *message, const struct mcp_headers *headers,
                         struct mcp_fault *fault)
{
    if (!headers->version)
        return mcp_fault(fault, MCP_HEADER_MISMATCH, "the header MCP-Protocol-Version is missing");
    if (!headers->method)
        return mcp_fault(fault, MCP_HEADER_MISMATCH, "the header Mcp-Method is missing");
    return name_check(message, headers->name, fault);
}

int mcp_envelope_read(const struct mcp_message *message, const struct mcp_headers *headers,
                      struct mcp_envelope *ret, struct mcp_fault *fault)
{
    const json_t *meta = meta_of(message->params);
    const char *version = json_string_value(json_object_get(meta, META_VERSION));
    bool is_request = message->kind == MCP_REQUEST;

    *ret = (struct mcp_envelope){
        .has_tasks = json_is_object(
            json_object_get(json_object_get(json_object_get(meta, META_CAPABILITIES), "extensions"),
                            MCP_TASKS_EXTENSION)),
    };
    if (is_request && meta_check(meta, fault) < 0)
        return -1;
    if (version && headers->version && !value_equals(headers->version, version))
        return mcp_fault(fault, MCP_HEADER_MISMATCH,
                         "the header MCP-Protocol-Version '%.40s' is not " META_VERSION " '%.40s'",
                         headers->version, version);
    if (headers->method && !value_equals(headers->method, message->method))
        return mcp_fault(fault, MCP_HEADER_MISMATCH,
                         "the header Mcp-Method '%.60s' is not the method '%.60s'", headers->method,
                         message->method);
    if (is_request && version && strcmp(version, MCP_STATELESS_VERSION) != 0)
        return mcp_fault_version(fault, version);
    return is_request ? headers_check(message, headers, fault) : 0;
}

/* --- replies ---------------------------------------------------------------------------------- */

static json_t *server_info(void)
{
    return json_pack("{s:s, s:s, s:s}", "name", "holt", "title", "Holt", "version", HOLT_VERSION);
}

static json_t *discover(enum net_mode network)
{
    return json_pack("{s:o, s:{s:{}, s:{s:{}}}, s:s, s:i, s:s}", "supportedVersions",
                     mcp_versions_json(), "capabilities", "tools", "extensions",
                     MCP_TASKS_EXTENSION, "instructions", mcp_instructions(network), "ttlMs",
                     LIST_TTL_MS, "cacheScope", "private");
}

/* The list depends on what the token may do, so it is not for others. */
static json_t *tools_list(const struct mcp_message *message, bool is_read_only,
                          struct mcp_fault *fault)
{
    json_t *list = mcp_tools_list(message->params, is_read_only, fault);

    if (list)
        (void)json_object_update_new(
            list, json_pack("{s:i, s:s}", "ttlMs", LIST_TTL_MS, "cacheScope", "private"));
    return list;
}

json_t *mcp_stateless_answer(const struct mcp_message *message, bool is_read_only,
                             enum net_mode network, struct mcp_fault *fault)
{
    (void)mcp_fault(fault, MCP_INTERNAL, "no memory");
    if (strcmp(message->method, "server/discover") == 0)
        return discover(network);
    if (strcmp(message->method, "tools/list") == 0)
        return tools_list(message, is_read_only, fault);
    (void)mcp_fault(fault, MCP_NO_METHOD, "there is no method '%.64s'", message->method);
    return NULL;
}

/* Codes from -32019 to -32000 are for implementations of earlier revisions. */
static void error_renumber(json_t *error)
{
    json_int_t code = json_integer_value(json_object_get(error, "code"));

    if (code == MCP_REFUSED || code == MCP_NO_SESSION)
        (void)json_object_set_new(error, "code", json_integer(MCP_REFUSED_STATELESS));
}

json_t *mcp_stateless_reply(json_t *reply)
{
    json_t *result = json_object_get(reply, "result"), *meta = json_object_get(result, "_meta");

    if (json_is_null(json_object_get(reply, "id")))
        (void)json_object_del(reply, "id");
    error_renumber(json_object_get(reply, "error"));
    if (!result || json_object_get(meta, META_SERVER))
        return reply;
    if (!json_object_get(result, "resultType"))
        (void)json_object_set_new(result, "resultType", json_string("complete"));
    if (!meta)
        (void)json_object_set_new(result, "_meta", meta = json_object());
    (void)json_object_set_new(meta, META_SERVER, server_info());
    return reply;
}

json_t *mcp_listen_answer(const struct mcp_message *message, json_t **ret_result,
                          struct mcp_fault *fault)
{
    if (!json_is_object(json_object_get(message->params, "notifications"))) {
        (void)mcp_fault(fault, MCP_INVALID_PARAMS, "'notifications' must be an object");
        return NULL;
    }
    (void)mcp_fault(fault, MCP_INTERNAL, "no memory");
    *ret_result = json_pack("{s:{s:O}}", "_meta", META_SUBSCRIPTION, message->id);
    return json_pack("{s:s, s:s, s:{s:{}, s:{s:O}}}", "jsonrpc", "2.0", "method",
                     "notifications/subscriptions/acknowledged", "params", "notifications", "_meta",
                     META_SUBSCRIPTION, message->id);
}
