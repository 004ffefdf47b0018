// SPDX-License-Identifier: Apache-2.0
#include "cli/run/attach.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/run/input.h"
#include "cli/run/session.h"
#include "cli/run/signals.h"
#include "holt.h"

enum { REPLAY_BYTES = 64 * 1024 };

int attach_session(const struct connection *connection, json_t *request, struct run_setup *setup)
{
    cleanup_json json_t *owned = request;
    cleanup_free char *text = owned ? json_dumps(owned, JSON_COMPACT) : NULL;
    struct holt_error error;
    int status;

    if (!text)
        return report("an argument is not UTF-8");
    if (holt_stream_open(connection->holt, "holt.v1.ProcessService/Attach", text, HOLT_NO_DEADLINE,
                         &setup->stream, &error) < 0)
        return report_holt_error(&error);
    setup->host = connection->host;
    status = run_session(setup);
    holt_stream_close(setup->stream);
    return status;
}

/* The command's name, for messages, or what else it is known by. */
static const char *name_of(const json_t *process, const char *id)
{
    const char *name = json_string_value(json_array_get(json_object_get(process, "args"), 0));

    return name ? name : id;
}

/* A terminal at the other end is drawn on ours where there is one; what else we read is only typed
 * there, and its end means nothing. */
static int attach_process(const struct connection *connection, const struct attach *what,
                          const json_t *process)
{
    bool has_terminal = json_is_true(json_object_get(process, "terminal"));
    bool takes_input = has_terminal || json_is_true(json_object_get(process, "stdin"));
    cleanup_close int signal_fd = -EBADF;
    struct run_setup setup = {
        .role = RUN_GUEST,
        .command = name_of(process, what->process),
        .has_tty = has_terminal && isatty(STDIN_FILENO),
        .has_stdin = takes_input && run_input_is_possible(),
        .keeps_stdin = has_terminal,
    };

    signal_fd = run_signals_open(setup.has_tty);
    if (signal_fd < 0)
        return report("signalfd: %s", strerror(-signal_fd));
    setup.signal_fd = signal_fd;
    return attach_session(connection,
                          json_pack("{s:s, s:s, s:i, s:b}", "sandboxId", what->sandbox, "processId",
                                    what->process, "replayBytes", REPLAY_BYTES, "follow", 1),
                          &setup);
}

int attach_run(const struct attach *what)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_json json_t *reply = NULL;
    struct holt_error error;
    const json_t *process;

    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (call_try(connection.holt, "holt.v1.ProcessService/Get",
                 json_pack("{s:s, s:s}", "sandboxId", what->sandbox, "processId", what->process),
                 &reply, &error) < 0)
        return report_holt_error(&error);
    process = call_object(reply, "process");
    return process ? attach_process(&connection, what, process) : STATUS_HOLT;
}

static int command_attach_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 2, "an ID and a PROCESS" };
    int next, status;

    if (!command_parse_plain(&command_attach, &operands, argc, argv, &next, &status))
        return status;
    return attach_run(&(struct attach){ argv[next], argv[next + 1] });
}

const struct command command_attach = {
    .group = "Processes",
    .name = "attach",
    .operands = "ID PROCESS",
    .summary = "Stay with a process that runs: its output, our input",
    .example = "holt attach work p4    # ctrl-p ctrl-q leaves it running",
    .options = &option_table_help,
    .passes_status = true,
    .run = command_attach_run,
};
