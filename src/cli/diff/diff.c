// SPDX-License-Identifier: Apache-2.0
#include "cli/diff/diff.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "holt.h"

struct diff_options {
    struct output_options output; /* JSON: one change per line */
    bool wants_stat, wants_patch;
    const char *with, *path;
    bool is_from_codebase;
    struct diff_stat stat;
    int status; /* after a report: a change could not be printed */
};

static void options_done(struct diff_options *options)
{
    diff_stat_done(&options->stat);
}

static const struct option_row rows[] = {
    { "stat", 0, NULL, "count the changed lines", OPTION_FLAG(struct diff_options, wants_stat) },
    { "patch", 'p', NULL, "print a patch for git apply",
      OPTION_FLAG(struct diff_options, wants_patch) },
    { "path", 0, "PATH", "show only this absolute path and those below it",
      OPTION_TEXT(struct diff_options, path) },
    { "with", 0, "ID", "compare with this sandbox, for instance another fork",
      OPTION_TEXT(struct diff_options, with) },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

static void print_change_json(const struct holt_change *change)
{
    size_t len;
    const char *text = output_json_find(change, NULL, &len);

    output_json_line(text, len);
}

static int change_take(void *context, const struct holt_change *change)
{
    struct diff_options *options = context;

    if (options->output.wants_json)
        print_change_json(change);
    else if (options->wants_patch)
        diff_print_patch(change, stdout);
    else if (diff_letter(change) == 0)
        return 0;
    else if (options->wants_stat)
        diff_stat_add(&options->stat, change);
    else
        diff_print_name(change);
    return options->status;
}

static int diff(struct diff_options *options, int count, char **operands)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_diff_options request = HOLT_INIT(holt_diff_options);
    struct holt_error error;
    int r;

    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    request.is_from_codebase = options->is_from_codebase;
    request.from = count > 1 ? operands[1] : NULL;
    request.to = count > 2 ? operands[2] : NULL;
    request.counts_lines = options->wants_stat;
    request.has_patch = options->wants_patch;
    request.to_sandbox = options->with;
    request.path = options->path;
    request.on_change = change_take;
    request.context = options;
    r = holt_diff(connection.holt, operands[0], &request, HOLT_NO_DEADLINE, &error);
    if (r == 0 && options->wants_stat && !options->output.wants_json)
        diff_stat_print(&options->stat);
    (void)fflush(stdout);
    if (r < 0)
        return options->status != STATUS_OK ? options->status : report_holt_error(&error);
    return command_printed();
}

static int diff_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 3, "an ID and at most FROM and TO" };
    cleanup_with(options_done) struct diff_options options = { .status = STATUS_OK };
    int next, status;

    if (!command_parse(&command_diff, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_diff, &operands, argc - next))
        return STATUS_HOLT;
    if (options.wants_stat && options.wants_patch && !options.output.wants_json)
        return command_misused(&command_diff, "shows either --stat or --patch");
    return diff(&options, argc - next, argv + next);
}

const struct command command_diff = {
    .group = "Turns",
    .name = "diff",
    .operands = "ID [FROM [TO]]",
    .summary = "Show changed files",
    .example = "holt diff work turn-0001 --patch | git apply",
    .options = &table,
    .run = diff_run,
};

static const struct option_row changes_rows[] = {
    { "stat", 0, NULL, "count the changed lines", OPTION_FLAG(struct diff_options, wants_stat) },
    { "patch", 'p', NULL, "print a patch for git apply",
      OPTION_FLAG(struct diff_options, wants_patch) },
    { "path", 0, "PATH", "show only this absolute path and those below it",
      OPTION_TEXT(struct diff_options, path) },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option_table changes_table = { changes_rows, ARRAY_SIZE(changes_rows), NULL };

static int changes_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "an ID" };
    cleanup_with(options_done) struct diff_options options = { .status = STATUS_OK,
                                                               .is_from_codebase = true };
    int next, status;

    if (!command_parse(&command_changes, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_changes, &operands, argc - next))
        return STATUS_HOLT;
    if (options.wants_stat && options.wants_patch && !options.output.wants_json)
        return command_misused(&command_changes, "shows either --stat or --patch");
    return diff(&options, argc - next, argv + next);
}

const struct command command_changes = {
    .group = "Codebases",
    .name = "changes",
    .operands = "ID",
    .summary = "Show what a sandbox has changed in its codebase",
    .example = "holt changes work --patch",
    .options = &changes_table,
    .run = changes_run,
};
