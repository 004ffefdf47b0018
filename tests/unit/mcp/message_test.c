// SPDX-License-Identifier: Apache-2.0
/* What a message of MCP is taken for. */
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "check.h"
#include "mcp/mcp.h"
#include "mcp/message.h"

/* Whether a notification with this id cancels something. */
static bool cancels(const char *method, json_t *id)
{
    cleanup_json json_t *value = json_pack("{s:s, s:s, s:{s:o}}", "jsonrpc", "2.0", "method",
                                           method, "params", "requestId", id);
    struct mcp_message message;
    struct mcp_fault fault;

    CHECK(mcp_message_read(value, &message, &fault) == 0);
    return mcp_cancelled_id(&message);
}

/* A cancellation may come before its request and is remembered until then, so it must be short. */
static void only_what_can_be_an_id_is_canceled(void)
{
    char text[MCP_ID_MAX + 2];

    memset(text, 'x', sizeof(text));
    text[MCP_ID_MAX + 1] = '\0';
    CHECK(!cancels("notifications/cancelled", json_string(text)));
    text[MCP_ID_MAX] = '\0';
    CHECK(cancels("notifications/cancelled", json_string(text)));
    CHECK(!cancels("notifications/canceled", json_string(text)));
    CHECK(cancels("notifications/cancelled", json_integer(7)));
    CHECK(!cancels("notifications/cancelled", json_array()));
    CHECK(!cancels("notifications/cancelled", json_object()));
    CHECK(!cancels("notifications/cancelled", json_null()));
}

int main(void)
{
    RUN(only_what_can_be_an_id_is_canceled);
    return 0;
}
