// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "base/json.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

/* There is no other form, but whoever writes -o json everywhere need not know that. */
static const struct option_row rows[] = { OPTION_OUTPUT, OPTION_HELP };

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

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
    struct output_options options = { .wants_json = true };
    int next, status;

    if (!command_parse(&command_inspect, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_inspect, &operands, argc - next))
        return STATUS_HOLT;
    if (!options.wants_json)
        return command_misused(&command_inspect, "has no table to show; 'holt ls' has");
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
    .options = &table,
    .run = inspect_run,
};
