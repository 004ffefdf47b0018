// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "cli/call.h"
#include "cli/command.h"
#include "cli/connect.h"
#include "cli/report.h"
#include "holt.h"

/* Goes on after a failure, as rm(1) does. */
static int shells_rm_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 0, "an ID and a NAME" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_error error;
    const char *id;
    int next, status;

    if (!command_parse_plain(&command_shells_rm, &operands, argc, argv, &next, &status))
        return status;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    status = STATUS_OK;
    id = argv[next++];
    for (; next < argc; next++)
        if (call_try(connection.holt, "holt.v1.ShellService/Remove",
                     json_pack("{s:s, s:s}", "sandboxId", id, "name", argv[next]), NULL,
                     &error) < 0)
            status = report_holt_error(&error);
    return status;
}

const struct command command_shells_rm = {
    .group = "Shells",
    .name = "shells rm",
    .operands = "ID NAME...",
    .summary = "End shells of a sandbox and all that they started",
    .options = &option_table_help,
    .run = shells_rm_run,
};
