// SPDX-License-Identifier: Apache-2.0
#include "cli/run/call.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/run/input.h"
#include "cli/run/options.h"
#include "cli/run/session.h"
#include "cli/run/signals.h"
#include "holt.h"

static bool has_tty(enum run_tty wanted)
{
    if (wanted == TTY_AUTO)
        return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    return wanted == TTY_ALWAYS;
}

static int call_text(const char *method, const struct run_plan *plan, const char *request)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_close int signal_fd = -EBADF;
    struct run_setup setup = {
        .command = plan->args[0],
        .has_tty = plan->has_tty,
        .has_stdin = plan->has_stdin,
    };
    struct holt_error error;
    int status;

    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    signal_fd = run_signals_open(plan->has_tty);
    if (signal_fd < 0)
        return report("signalfd: %s", strerror(-signal_fd));
    if (holt_stream_open_raw(connection.holt, method, request, HOLT_NO_DEADLINE, &setup.stream,
                             &error) < 0)
        return report_holt_error(&error);
    setup.host = connection.host;
    setup.signal_fd = signal_fd;
    status = run_session(&setup);
    holt_stream_close(setup.stream);
    return status;
}

int run_call(const struct run_call *call)
{
    cleanup_json json_t *request = call->request;
    cleanup_free char *text = NULL;
    const struct run_plan plan = {
        .args = call->args,
        .has_tty = has_tty(call->options->tty),
        .has_stdin = run_input_is_possible(),
    };
    struct err err;

    if (run_add_process(request, call->options, &plan, &err) < 0)
        return report("%s: %s", call->command->name, err.msg);
    text = json_dumps(request, JSON_COMPACT);
    return text ? call_text(call->method, &plan, text) : report("no memory for the request");
}
