// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/run/options.h"
#include "cli/run/run.h"
#include "holt.h"

struct exec_options {
    struct run_options run;
    const char *key;
    bool is_detached;
    bool is_interactive;
};

static void options_done(struct exec_options *options)
{
    run_options_done(&options->run);
}

static const struct option_row rows[] = {
    { "detach", 'd', NULL, "do not wait; print the id of the process",
      OPTION_FLAG(struct exec_options, is_detached) },
    { "interactive", 'i', NULL, "pass stdin on; with -d, keep it open for 'holt attach'",
      OPTION_FLAG(struct exec_options, is_interactive) },
    { "tag", 0, "TEXT", "a tag, for 'holt ps --tag'", OPTION_TEXT(struct exec_options, run.tag) },
    { "tier", 0, "NAME", "run the command in this runtime, which is stronger than the sandbox's",
      OPTION_TEXT(struct exec_options, run.tier) },
    { "key", 0, "TEXT", "start once: a second exec with this key joins the first",
      OPTION_TEXT(struct exec_options, key) },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_QUIET,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), &run_process_table };

static int exec_detached(const char *sandbox, struct exec_options *options, char **args)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_command command = HOLT_INIT(holt_command);
    cleanup_result struct holt_process_info *process = NULL;
    struct holt_error error;
    struct err err;

    if (run_command_set(&options->run, args, options->run.tty == TTY_ALWAYS, &command, &err) < 0)
        return report("exec: %s", err.msg);
    command.has_stdin = options->is_interactive;
    command.idempotency_key = options->key;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_process_start(connection.holt, sandbox, &command, HOLT_NO_DEADLINE, &process, &error) <
        0)
        return report_holt_error(&error);
    return output_id(&options->run.output, process, "process", process->id);
}

static int exec_run(int argc, char **argv)
{
    cleanup_with(options_done) struct exec_options options = { .key = NULL };
    struct run_request request = { .command = &command_exec, .options = &options.run };
    struct command_words words;
    int status;

    if (!command_parse_with_id(&command_exec, &options, argc, argv, &words, &status))
        return status;
    if (words.command >= argc)
        return command_misused(&command_exec, "needs an ID and a COMMAND");
    if (options.run.output.wants_json && !options.is_detached)
        return command_misused(&command_exec, "--output needs --detach");
    request.sandbox = argv[words.id];
    request.key = options.key;
    request.has_stdin = options.is_interactive;
    request.args = argv + words.command;
    return options.is_detached ? exec_detached(request.sandbox, &options, request.args)
                               : run_follow(&request);
}

const struct command command_exec = {
    .group = "Processes",
    .name = "exec",
    .operands = "ID [--] COMMAND [ARGUMENT...]",
    .summary = "Run a command in a sandbox",
    .example = "holt exec work -- sh -c 'echo 1 >/workspace/a'",
    .options = &table,
    .takes_command = true,
    .passes_status = true,
    .run = exec_run,
};
