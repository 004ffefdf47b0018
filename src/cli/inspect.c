// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "base/json.h"
#include "cli/call.h"
#include "cli/command.h"
#include "cli/connect.h"
#include "cli/report.h"
#include "holt.h"

static int inspect_one(struct holt *holt, const char *id)
{
    cleanup_json json_t *reply = NULL;
    const json_t *sandbox;
    struct holt_error error;

    if (call_try(holt, "holt.v1.SandboxService/Get", json_pack("{s:s}", "sandboxId", id), &reply,
                 &error) < 0)
        return report_holt_error(&error);
    sandbox = call_object(reply, "sandbox");
    return sandbox ? print_json(sandbox) : STATUS_HOLT;
}

static int inspect_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 0, "an ID" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    int next, status;

    if (!command_parse_plain(&command_inspect, &operands, argc, argv, &next, &status))
        return status;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    status = STATUS_OK;
    for (; next < argc; next++)
        if (inspect_one(connection.holt, argv[next]) != STATUS_OK)
            status = STATUS_HOLT;
    return status;
}

const struct command command_inspect = {
    .group = "Sandboxes",
    .name = "inspect",
    .operands = "ID...",
    .summary = "Show all that is known of sandboxes, as JSON",
    .options = &option_table_help,
    .run = inspect_run,
};
