// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/run/options.h"
#include "cli/run/outcome.h"
#include "holt.h"

struct launch_options {
    struct run_options run;
    const char *key;
    enum holt_restart restart;
    const char *ready_path;
    uint64_t ready_ms;
    struct run_port port;
    bool does_not_wait;
};

static void options_done(struct launch_options *options)
{
    run_options_done(&options->run);
}

static int set_port(void *into, const char *value, struct err *err)
{
    struct launch_options *options = into;

    if (!run_port_parse(value, &options->port))
        return err_set(err, ERR_INVALID, "--port '%.100s' is not PORT or HOSTPORT:PORT", value);
    return 0;
}

static int set_restart(void *into, const char *value, struct err *err)
{
    static const char *const names[] = {
        [HOLT_RESTART_NO] = "no",
        [HOLT_RESTART_ON_FAILURE] = "on-failure",
        [HOLT_RESTART_ALWAYS] = "always",
    };
    struct launch_options *options = into;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strcmp(names[i], value) == 0) {
            options->restart = (enum holt_restart)i;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, "--restart '%.100s' is not no, on-failure or always", value);
}

static int set_ready_timeout(void *into, const char *value, struct err *err)
{
    struct launch_options *options = into;

    if (parse_duration_ms(value, &options->ready_ms) < 0)
        return err_set(err, ERR_INVALID, "--ready-timeout '%.100s' is not a time like 30s", value);
    options->does_not_wait = options->ready_ms == 0;
    return 0;
}

static const struct option_row rows[] = {
    { "port", 'p', "[HOSTPORT:]PORT", "its port, which is forwarded to the host and waited for",
      OPTION_CALL(set_port) },
    { "ready", 0, "PATH", "ready when a GET of this path succeeds",
      OPTION_PATH(struct launch_options, ready_path, "a path like /health") },
    { "ready-timeout", 0, "TIME", "how long to wait for it; 0: do not wait",
      OPTION_CALL(set_ready_timeout) },
    { "restart", 0, "POLICY", "when to start it again: no, on-failure or always",
      OPTION_CALL(set_restart) },
    { "tag", 0, "TEXT", "a tag, for 'holt ps --tag'", OPTION_TEXT(struct launch_options, run.tag) },
    { "key", 0, "TEXT", "launch once: a second launch with this key joins the first",
      OPTION_TEXT(struct launch_options, key) },
    OPTION_OUTPUT,
    OPTION_JSON,
    { "quiet", 'q', NULL, "print only the id", OPTION_CALL(option_set_quiet) },
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), &run_process_table };

/* Prints the id and the address on one line; the address only if the service is ready or was not
 * waited for. */
static int print_launched(const struct output_options *output,
                          const struct holt_process_info *process, const char *command, bool waits)
{
    const char *address = waits && !process->is_ready ? "" : process->address;

    if (output->wants_json || output->is_quiet)
        (void)output_id(output, process, NULL, process->id);
    else
        (void)printf("%s%s%s\n", process->id, *address ? " " : "", address);
    return waits ? run_ready_status("launch", command, process) : command_printed();
}

static int launch(const char *sandbox, struct launch_options *options, char **args)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_command command = HOLT_INIT(holt_command);
    struct holt_service service = HOLT_INIT(holt_service);
    cleanup_result struct holt_process_info *process = NULL;
    struct holt_error error;
    struct err err;

    if (run_command_set(&options->run, args, options->run.tty == TTY_ALWAYS, &command, &err) < 0)
        return report("launch: %s", err.msg);
    command.idempotency_key = options->key;
    service.command = &command;
    service.port = options->port.inside;
    service.host_port = options->port.host;
    service.restart = options->restart;
    service.waits = service.port && !options->does_not_wait;
    service.ready_path = options->ready_path;
    service.ready_timeout_ms = options->ready_ms;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_process_launch(connection.holt, sandbox, &service, HOLT_NO_DEADLINE, &process,
                            &error) < 0)
        return report_holt_error(&error);
    return print_launched(&options->run.output, process, args[0], service.waits);
}

static int launch_run(int argc, char **argv)
{
    cleanup_with(options_done) struct launch_options options = { .key = NULL };
    struct command_words words;
    int status;

    if (!command_parse_with_id(&command_launch, &options, argc, argv, &words, &status))
        return status;
    if (words.command >= argc)
        return command_misused(&command_launch, "needs an ID and a COMMAND");
    if ((options.ready_path || options.ready_ms) && !options.port.inside)
        return command_misused(&command_launch, "--ready and --ready-timeout need a --port");
    return launch(argv[words.id], &options, argv + words.command);
}

const struct command command_launch = {
    .group = "Processes",
    .name = "launch",
    .operands = "ID [--] COMMAND [ARGUMENT...]",
    .summary = "Start a service in a sandbox and forward its port",
    .example = "holt launch work --port 8000 --restart always -- python3 -m http.server 8000",
    .options = &table,
    .takes_command = true,
    .run = launch_run,
};
