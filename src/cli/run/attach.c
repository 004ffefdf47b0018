// SPDX-License-Identifier: Apache-2.0
#include "cli/run/attach.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/terminal.h"
#include "cli/run/input.h"
#include "cli/run/session.h"
#include "cli/run/signals.h"
#include "holt.h"

enum { REPLAY_BYTES = 64 * 1024 };

static int attach_open(struct holt *holt, const char *sandbox, const char *process, bool has_tty,
                       struct holt_process **ret, struct holt_error *error)
{
    struct holt_attach_options options = HOLT_INIT(holt_attach_options);

    options.sandbox = sandbox;
    options.process_id = process;
    options.replays = true;
    options.replay_bytes = REPLAY_BYTES;
    options.follows = true;
    if (has_tty)
        terminal_size(&options.rows, &options.columns);
    return holt_process_attach(holt, &options, HOLT_NO_DEADLINE, ret, error);
}

/* The end of our stdin does not close the terminal of a process. */
int attach_run(struct connection *connection, const char *sandbox, const char *process)
{
    cleanup_result struct holt_process_info *info = NULL;
    struct run_setup setup = { .connection = connection, .role = RUN_GUEST };
    cleanup_close int signal_fd = -EBADF;
    struct holt_error error;

    if (holt_process_get(connection->holt, sandbox, process, HOLT_NO_DEADLINE, &info, &error) < 0)
        return report_holt_error(&error);
    setup.command = info->args[0] ? info->args[0] : process;
    setup.has_tty = info->has_terminal && isatty(STDIN_FILENO);
    setup.has_stdin = (info->has_terminal || info->has_stdin) && run_input_is_possible();
    setup.keeps_stdin = info->has_terminal;
    signal_fd = run_signals_open(setup.has_tty);
    if (signal_fd < 0)
        return report("signalfd: %s", strerror(-signal_fd));
    setup.signal_fd = signal_fd;
    if (attach_open(connection->holt, sandbox, process, setup.has_tty, &setup.process, &error) < 0)
        return report_holt_error(&error);
    return run_session(&setup);
}

static int command_attach_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 2, "an ID and a PROCESS" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    int next, status;

    if (!command_parse_plain(&command_attach, &operands, argc, argv, &next, &status))
        return status;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    return attach_run(&connection, argv[next], argv[next + 1]);
}

const struct command command_attach = {
    .group = "Processes",
    .name = "attach",
    .operands = "ID PROCESS",
    .summary = "Attach to the output and the input of a process",
    .example = "holt attach work p4    # ctrl-p ctrl-q detaches",
    .options = &option_table_help,
    .passes_status = true,
    .run = command_attach_run,
};
