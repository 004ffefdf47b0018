// SPDX-License-Identifier: Apache-2.0
/* The commands that remove something of a sandbox by name. */
#include "base/cleanup.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

struct part {
    const struct command *command;
    const char *method;
    const char *field; /* of the request, for the name */
};

/* Goes on after a failure, as rm(1) does. */
static int remove_all(const struct part *part, int argc, char **argv)
{
    static const struct operands operands = { 2, 0, "an ID and a NAME" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_error error;
    const char *id;
    int next, status;

    if (!command_parse_plain(part->command, &operands, argc, argv, &next, &status))
        return status;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    status = STATUS_OK;
    id = argv[next++];
    for (; next < argc; next++)
        if (call_try(connection.holt, part->method,
                     json_pack("{s:s, s:s}", "sandboxId", id, part->field, argv[next]), NULL,
                     &error) < 0)
            status = report_holt_error(&error);
    return status;
}

static int snapshots_rm_run(int argc, char **argv)
{
    static const struct part part = {
        &command_snapshots_rm,
        "holt.v1.SnapshotService/Remove",
        "snapshot",
    };

    return remove_all(&part, argc, argv);
}

static int shells_rm_run(int argc, char **argv)
{
    static const struct part part = {
        &command_shells_rm,
        "holt.v1.ShellService/Remove",
        "name",
    };

    return remove_all(&part, argc, argv);
}

const struct command command_snapshots_rm = {
    .group = "Turns",
    .name = "snapshots rm",
    .operands = "ID SNAPSHOT...",
    .summary = "Remove turns or snapshots of a sandbox",
    .options = &option_table_help,
    .run = snapshots_rm_run,
};

const struct command command_shells_rm = {
    .group = "Shells",
    .name = "shells rm",
    .operands = "ID SHELL...",
    .summary = "End shells of a sandbox and all that they started",
    .options = &option_table_help,
    .run = shells_rm_run,
};
