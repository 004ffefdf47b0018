// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/commands/sandboxes.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/transfer.h"
#include "cli/run/options.h"
#include "holt.h"

static const struct option_row rows[] = {
    { "tag", 0, "TEXT", "a tag of the process, for 'holt ps --tag'",
      OPTION_TEXT(struct run_options, tag) },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_QUIET,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), &run_process_table };

/* Ends the words at the first "--", and returns its index; argc: there is none. */
static int words_cut(int argc, char **argv)
{
    int i = 1;

    while (i < argc && strcmp(argv[i], "--") != 0)
        i++;
    argv[i] = NULL;
    return i;
}

/* Prints the sandboxes if an output was asked for. */
static int resume_each(struct holt *holt, int count, char **ids,
                       const struct output_options *output)
{
    cleanup_with(sandbox_set_done) struct sandbox_set set = { .count = 0 };
    int status = STATUS_OK;

    for (int i = 0; i < count; i++) {
        struct holt_sandbox *sandbox;
        struct transfer_watch watch;
        struct holt_error error;
        int r;

        transfer_watch_begin(&watch, "fetching", ids[i]);
        r = holt_sandbox_resume(holt, ids[i], HOLT_NO_DEADLINE, &sandbox, &error);
        transfer_watch_end(&watch);
        if (r < 0)
            status = report_holt_error(&error);
        else
            sandbox_set_add(&set, sandbox);
    }
    if ((output->wants_json || output->is_quiet) &&
        sandbox_set_print(&set, output, count == 1) != STATUS_OK)
        status = STATUS_HOLT;
    return status;
}

static int resume_with(struct holt *holt, const char *sandbox, const struct holt_command *command,
                       const struct output_options *output)
{
    cleanup_result struct holt_process_info *process = NULL;
    struct holt_error error;

    if (holt_sandbox_resume_with(holt, sandbox, command, HOLT_NO_DEADLINE, &process, &error) < 0)
        return report_holt_error(&error);
    return output_id(output, process, "process", process->id);
}

static int resume_run(int argc, char **argv)
{
    static const struct operands many = { 1, 0, "an ID" };
    static const struct operands one = { 1, 1, "exactly one ID for a COMMAND" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_with(run_options_done) struct run_options options = { .tty = TTY_AUTO };
    struct holt_command command = HOLT_INIT(holt_command);
    const int count = words_cut(argc, argv);
    const bool has_command = count < argc;
    struct err err;
    int next, status;

    if (!command_parse(&command_resume, &options, count, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_resume, has_command ? &one : &many, count - next))
        return STATUS_HOLT;
    if (has_command && count + 1 == argc)
        return command_misused(&command_resume, "needs a COMMAND after '--'");
    if (has_command &&
        run_command_set(&options, argv + count + 1, options.tty == TTY_ALWAYS, &command, &err) < 0)
        return report("resume: %s", err.msg);
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    return has_command ? resume_with(connection.holt, argv[next], &command, &options.output)
                       : resume_each(connection.holt, count - next, argv + next, &options.output);
}

const struct command command_resume = {
    .group = "Sandboxes",
    .name = "resume",
    .operands = "ID... [-- COMMAND [ARGUMENT...]]",
    .summary = "Resume paused sandboxes, also deep-paused ones, and start a command in one of them",
    .example = "holt resume work -- make test    # prints the id of the process",
    .options = &table,
    .run = resume_run,
};
