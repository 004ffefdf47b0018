// SPDX-License-Identifier: Apache-2.0
/* holt agent serve: the server of an agent, and where it is. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cli/agent/options.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/run/signals.h"
#include "holt.h"

struct serve_options {
    struct agent_options agent;
    bool is_detached;
};

static void options_done(struct serve_options *options)
{
    agent_options_done(&options->agent);
}

/* Prints where the server is: the password goes to the terminal of the user only. */
static int served_print(const struct output_options *output, const struct holt_sandbox *sandbox)
{
    const struct holt_agent *agent = sandbox->agent;

    if (output->wants_json)
        return output_json(sandbox, NULL);
    if (output->is_quiet) {
        (void)printf("%s\n", sandbox->id);
        return command_printed();
    }
    (void)printf("sandbox   %s\naddress   http://%s\n", sandbox->id, agent->address);
    if (*agent->user)
        (void)printf("user      %s\n", agent->user);
    if (*agent->token)
        (void)printf("password  %s\n", agent->token);
    return command_printed();
}

/* Shows the output of the server until it ends or a signal comes. */
static int output_follow(struct holt_process *process, int signal_fd)
{
    struct pollfd fds[] = { { .events = POLLIN }, { .fd = signal_fd, .events = POLLIN } };
    const struct holt_process_event *event;
    struct holt_error error;
    int r = 1;

    while (r > 0) {
        fds[0].fd = holt_process_fd(process);
        if (fds[0].fd >= 0 && poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
            return report("poll: %s", strerror(errno));
        if (fds[0].fd >= 0 && fds[1].revents)
            return STATUS_OK;
        r = holt_process_next(process, &event, &error);
        if (r > 0 && (event->kind == HOLT_PROCESS_STDOUT || event->kind == HOLT_PROCESS_STDERR))
            (void)write_all(STDERR_FILENO, event->data, event->len);
    }
    return r < 0 ? report_holt_error(&error) : STATUS_OK;
}

/* Waits until the server ends or the user interrupts, and removes the sandbox. */
static int serve_wait(struct holt *holt, const struct holt_sandbox *sandbox)
{
    struct holt_attach_options options = HOLT_INIT(holt_attach_options);
    cleanup_close int signal_fd = run_signals_open(false);
    struct holt_process *process = NULL;
    struct holt_error error;
    int status;

    options.sandbox = sandbox->id;
    options.follows = true;
    options.process_id = sandbox->agent->process;
    if (holt_process_attach(holt, &options, HOLT_NO_DEADLINE, &process, &error) < 0) {
        status = report_holt_error(&error);
    } else {
        status = output_follow(process, signal_fd);
        holt_process_close(process);
    }
    if (holt_sandbox_destroy(holt, sandbox->id, HOLT_NO_DEADLINE, &error) < 0)
        status = report_holt_error(&error);
    return status;
}

static int agent_serve_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "a TYPE" };
    cleanup_with(options_done) struct serve_options options = { .is_detached = false };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_sandbox *sandbox = NULL;
    int next, status;

    if (!command_parse(&command_agent_serve, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_agent_serve, &operands, argc - next))
        return STATUS_HOLT;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    options.agent.settings.serves = true;
    status = agent_sandbox_make(connection.holt, argv[next], &options.agent, &sandbox);
    if (status == STATUS_OK)
        status = served_print(&options.agent.run.output, sandbox);
    return status == STATUS_OK && !options.is_detached ? serve_wait(connection.holt, sandbox)
                                                       : status;
}

static const struct option_row rows[] = {
    { "detach", 'd', NULL, "do not wait for the end of the server",
      OPTION_FLAG(struct serve_options, is_detached) },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_QUIET,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), &agent_options_table };

const struct command command_agent_serve = {
    .group = "Agents",
    .name = "agent serve",
    .operands = "TYPE",
    .summary = "Start the server of an agent, and print its address and password",
    .example = "holt agent serve -d opencode",
    .options = &table,
    .run = agent_serve_run,
};
