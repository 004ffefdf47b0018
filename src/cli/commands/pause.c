// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/core/transfer.h"
#include "holt.h"

struct pause_options {
    struct common_options common;
    bool is_deep;
};

static const struct option_row rows[] = {
    { "deep", 0, NULL, "end the processes, and move the files to object storage",
      OPTION_FLAG(struct pause_options, is_deep) },
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

static int deep_pause(struct holt *holt, const char *sandbox, struct holt_error *error)
{
    struct transfer_watch watch;
    int r;

    transfer_watch_begin(&watch, "storing", sandbox);
    r = holt_sandbox_deep_pause(holt, sandbox, HOLT_NO_DEADLINE, NULL, error);
    transfer_watch_end(&watch);
    return r;
}

static int pause_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 0, "an ID" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct pause_options options = { .is_deep = false };
    int next, status, r;

    if (!command_parse(&command_pause, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_pause, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    status = STATUS_OK;
    for (; next < argc; next++) {
        struct holt_error error;

        r = options.is_deep
                ? deep_pause(connection.holt, argv[next], &error)
                : holt_sandbox_pause(connection.holt, argv[next], HOLT_NO_DEADLINE, NULL, &error);
        if (r < 0)
            status = report_holt_error(&error);
    }
    return status;
}

const struct command command_pause = {
    .group = "Sandboxes",
    .name = "pause",
    .operands = "ID...",
    .summary = "Freeze all processes of sandboxes, or move sandboxes to object storage",
    .example = "holt pause --deep work    # 'holt resume work' brings it back",
    .options = &table,
    .run = pause_run,
};
