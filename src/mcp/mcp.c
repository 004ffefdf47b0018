// SPDX-License-Identifier: Apache-2.0
#include "mcp/mcp.h"

#include <string.h>

#include "base/cleanup.h"
#include "mcp/message.h"
#include "mcp/stateless.h"
#include "mcp/tools.h"

/* Those with sessions, the latest first. */
static const char *const versions[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05" };

#define INSTRUCTIONS(network)                                                                      \
    "The tools work in a Linux sandbox, apart from the machine of the user. Relative paths start " \
    "at /workspace. " network " expose_port makes a server in the sandbox reachable. bash runs "   \
    "one command; shell keeps directory and variables; process_start is for servers and long "     \
    "jobs, with process_wait and process_logs. Commands have no terminal and no input. To undo: "  \
    "snapshot before something risky, then rollback; diff shows what has changed. A long result "  \
    "is cut in the middle and names a handle for read_output. fork and create_sandbox return the " \
    "id of another sandbox, which every tool takes as 'sandbox'."

static const char *const instructions[] = {
    [NET_NONE] = INSTRUCTIONS("There is no network: nothing can be downloaded."),
    [NET_OPEN] = INSTRUCTIONS("The network reaches public addresses (network_status has details)."),
    [NET_ALLOW] = INSTRUCTIONS("The network reaches only some hosts; network_status lists them."),
};

bool mcp_knows_version(const char *version)
{
    for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
        if (strcmp(versions[i], version) == 0)
            return true;
    return strcmp(MCP_STATELESS_VERSION, version) == 0;
}

json_t *mcp_versions_json(void)
{
    json_t *list = json_pack("[s]", MCP_STATELESS_VERSION);

    for (size_t i = 0; list && i < ARRAY_SIZE(versions); i++)
        (void)json_array_append_new(list, json_string(versions[i]));
    return list;
}

const char *mcp_instructions(enum net_mode network)
{
    return instructions[network < NET_ANY ? network : NET_OPEN];
}

bool mcp_version_has_batches(const char *version)
{
    return strcmp(version, "2025-03-26") == 0;
}

json_t *mcp_initialize(const json_t *params, enum net_mode network, const char **ret_version,
                       struct mcp_fault *fault)
{
    const char *wanted = json_string_value(json_object_get(params, "protocolVersion"));

    if (!wanted) {
        (void)mcp_fault(fault, MCP_INVALID_PARAMS, "'protocolVersion' must be a text");
        return NULL;
    }
    *ret_version = versions[0];
    for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
        if (strcmp(versions[i], wanted) == 0)
            *ret_version = versions[i];
    return json_pack("{s:s, s:{s:{s:b}}, s:{s:s, s:s, s:s}, s:s}", "protocolVersion", *ret_version,
                     "capabilities", "tools", "listChanged", 0, "serverInfo", "name", "holt",
                     "title", "Holt", "version", HOLT_VERSION, "instructions",
                     mcp_instructions(network));
}

/* All tools are on the first page, so no cursor was ever given out. */
json_t *mcp_tools_list(const json_t *params, bool is_read_only, struct mcp_fault *fault)
{
    if (json_object_get(params, "cursor")) {
        (void)mcp_fault(fault, MCP_INVALID_PARAMS, "no such cursor: there is one page");
        return NULL;
    }
    return mcp_tools_json(is_read_only);
}

json_t *mcp_answer(const struct mcp_message *message, bool is_read_only, struct mcp_fault *fault)
{
    (void)mcp_fault(fault, MCP_INTERNAL, "no memory");
    if (strcmp(message->method, "ping") == 0)
        return json_object();
    if (strcmp(message->method, "tools/list") == 0)
        return mcp_tools_list(message->params, is_read_only, fault);
    (void)mcp_fault(fault, MCP_NO_METHOD, "there is no method '%.64s'", message->method);
    return NULL;
}

const json_t *mcp_cancelled_id(const struct mcp_message *message)
{
    const json_t *id = json_object_get(message->params, "requestId");

    if (message->kind != MCP_NOTIFICATION ||
        strcmp(message->method, "notifications/cancelled") != 0)
        return NULL;
    return mcp_is_id(id) ? id : NULL;
}
