// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/signal_name.h"
#include "holt.h"

struct kill_options {
    struct common_options common;
    int signal;
    bool is_for_tree;
};

static int set_signal(void *into, const char *value, struct err *err)
{
    struct kill_options *options = into;

    if (signal_parse(value, &options->signal) < 0)
        return err_set(err, ERR_INVALID, "--signal '%.100s' is not one like TERM or 15", value);
    return 0;
}

static int set_tree(void *into, const char *value, struct err *err)
{
    struct kill_options *options = into;

    (void)value;
    (void)err;
    options->is_for_tree = true;
    return 0;
}

static const struct option_row rows[] = {
    { "signal", 's', "SIGNAL", "a name or a number; TERM by default", set_signal },
    { "tree", 0, NULL, "also to all that the process started", set_tree },
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

/* Goes on after a failure, as kill(1) does. */
static int kill_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 0, "an ID and a PROCESS" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct kill_options options = { .signal = SIGTERM };
    int next, status;

    if (!command_parse(&command_kill, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_kill, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    status = STATUS_OK;
    for (int i = next + 1; i < argc; i++) {
        json_t *request = json_pack("{s:s, s:s, s:i, s:b}", "sandboxId", argv[next], "processId",
                                    argv[i], "signal", options.signal, "tree", options.is_for_tree);
        struct holt_error error;

        if (call_try(connection.holt, "holt.v1.ProcessService/Signal", request, NULL, &error) < 0)
            status = report_holt_error(&error);
    }
    return status;
}

const struct command command_kill = {
    .group = "Processes",
    .name = "kill",
    .operands = "ID PROCESS...",
    .summary = "Send a signal to processes",
    .example = "holt kill -s INT --tree work p4",
    .options = &table,
    .run = kill_run,
};
