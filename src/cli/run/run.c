// SPDX-License-Identifier: Apache-2.0
#include "cli/run/run.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/image_ref.h"
#include "base/xalloc.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/run/input.h"
#include "cli/run/named.h"
#include "cli/run/options.h"
#include "cli/run/session.h"
#include "cli/run/signals.h"
#include "cli/template/pull.h"
#include "holt.h"

static bool has_tty(enum run_tty wanted)
{
    if (wanted == TTY_AUTO)
        return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    return wanted == TTY_ALWAYS;
}

static int process_open(struct holt *holt, const struct run_request *request,
                        const struct holt_command *command, struct holt_process **ret,
                        struct holt_error *error)
{
    struct holt_sandbox_options sandbox = HOLT_INIT(holt_sandbox_options);

    if (request->sandbox)
        return holt_process_open(holt, request->sandbox, command, HOLT_NO_DEADLINE, ret, error);
    run_sandbox_set(request->options, &sandbox);
    return holt_process_run(holt, &sandbox, command, HOLT_NO_DEADLINE, ret, error);
}

int run_follow(const struct run_request *request)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_command command = HOLT_INIT(holt_command);
    struct run_setup setup = {
        .connection = &connection,
        .command = request->args[0],
        .has_tty = has_tty(request->options->tty),
    };
    cleanup_close int signal_fd = -EBADF;
    struct holt_error error;
    struct err err;

    if (run_command_set(request->options, request->args, setup.has_tty, &command, &err) < 0)
        return report("%s: %s", request->command->name, err.msg);
    setup.has_stdin = (request->has_stdin || setup.has_tty) && run_input_is_possible();
    if (!request->has_stdin && !setup.has_tty && run_input_is_waiting())
        report_note("%s: standard input is not passed on; use -i", request->command->name);
    command.has_stdin = setup.has_stdin;
    command.idempotency_key = request->key;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    signal_fd = run_signals_open(setup.has_tty);
    if (signal_fd < 0)
        return report("signalfd: %s", strerror(-signal_fd));
    setup.signal_fd = signal_fd;
    if (process_open(connection.holt, request, &command, &setup.process, &error) < 0)
        return report_holt_error(&error);
    return run_session(&setup);
}

/* Takes a reference in front of the command as the template, with a "--" behind it. Returns how
 * many words that are. After a "--", all words are the command. */
static int image_take(struct run_options *options, int count, char **words)
{
    if (options->template || count == 0 || strcmp(words[-1], "--") == 0 || !image_ref_is(words[0]))
        return 0;
    options->template = words[0];
    return count > 1 && strcmp(words[1], "--") == 0 ? 2 : 1;
}

/* Reads the command of a template's image, which *ret_found holds. */
static int image_command(const char *template, struct holt_template **ret_found, char ***ret)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_error error;

    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_template_find(connection.holt, template, HOLT_NO_DEADLINE, ret_found, &error) < 0)
        return report_holt_error(&error);
    if ((*ret_found)->command_count == 0)
        return report_usage("run: needs a COMMAND: template '%s' has none of its own", template);
    *ret = (char **)(uintptr_t)(*ret_found)->command;
    return STATUS_OK;
}

static int run_run(int argc, char **argv)
{
    cleanup_with(run_named_done) struct run_named options = { .name = NULL };
    struct run_request request = { .command = &command_run,
                                   .options = &options.run,
                                   .has_stdin = true };
    cleanup_result struct holt_template *found = NULL;
    int next, status;

    if (!command_parse(&command_run, &options, argc, argv, &next, &status))
        return status;
    next += image_take(&options.run, argc - next, argv + next);
    if (next == argc && !options.run.template)
        return command_misused(&command_run, "needs an IMAGE or a COMMAND");
    if (options.run.output.wants_json && !options.is_detached)
        return command_misused(&command_run, "--output needs --detach");
    request.args = argv + next;
    status = pull_if_missing(options.run.template);
    if (status == STATUS_OK && next == argc)
        status = image_command(options.run.template, &found, &request.args);
    if (status != STATUS_OK)
        return STATUS_HOLT;
    return run_named_is_wanted(&options) ? run_named(&options, request.args) : run_follow(&request);
}

static int set_volume(void *into, const char *value, struct err *err)
{
    return words_add_volume(&((struct run_named *)into)->volumes, value, err);
}

static int set_port(void *into, const char *value, struct err *err)
{
    struct run_port port;

    if (!run_port_parse(value, &port))
        return err_set(err, ERR_INVALID, "--publish '%.100s' is not PORT or HOSTPORT:PORT", value);
    words_add(&((struct run_named *)into)->ports, value);
    return 0;
}

static int set_nothing(void *into, const char *value, struct err *err)
{
    (void)into;
    (void)value;
    (void)err;
    return 0;
}

/* -i and --rm are for users of other tools, who type run --rm -it. */
static const struct option_row habit_rows[] = {
    { "name", 0, "NAME", "a unique name of the sandbox", OPTION_TEXT(struct run_named, name) },
    { "volume", 'v', "NAME:PATH[:ro]",
      "a volume to mount at a path, with :ro read-only; may be repeated", OPTION_CALL(set_volume) },
    { "publish", 'p', "[HOSTPORT:]PORT", "forward a port of the sandbox; may be repeated",
      OPTION_CALL(set_port) },
    { "detach", 'd', NULL, "do not wait; print the id of the sandbox, which stays",
      OPTION_FLAG(struct run_named, is_detached) },
    { "interactive", 'i', NULL, "pass stdin on (always done)", OPTION_CALL(set_nothing) },
    { "rm", 0, NULL, "remove the sandbox at the end (always done)", OPTION_CALL(set_nothing) },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_QUIET,
};

static const struct option_table habit_table = { habit_rows, ARRAY_SIZE(habit_rows),
                                                 &run_process_table };

static const struct option_table table = { run_sandbox_rows, RUN_SANDBOX_ROWS, &habit_table };

const struct command command_run = {
    .group = "Sandboxes",
    .name = "run",
    .operands = "[IMAGE] [--] [COMMAND [ARGUMENT...]]",
    .summary = "Run a command in a throw-away sandbox",
    .example = "holt run --memory 512M --timeout 30s -- python3 -c 'print(\"hi\")'",
    .options = &table,
    .takes_command = true,
    .passes_status = true,
    .run = run_run,
};
