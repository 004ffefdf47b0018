// SPDX-License-Identifier: Apache-2.0
#include "cli/diff/diff.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

struct diff_options {
    struct output_options output; /* JSON: one change a line */
    bool wants_stat, wants_patch;
    struct diff_stat stat; /* gathered on the way */
};

static void options_done(struct diff_options *options)
{
    diff_stat_done(&options->stat);
}

static int set_stat(void *into, const char *value, struct err *err)
{
    struct diff_options *options = into;

    (void)value;
    (void)err;
    options->wants_stat = true;
    return 0;
}

static int set_patch(void *into, const char *value, struct err *err)
{
    struct diff_options *options = into;

    (void)value;
    (void)err;
    options->wants_patch = true;
    return 0;
}

static const struct option_row rows[] = {
    { "stat", 0, NULL, "count the lines that changed", set_stat },
    { "patch", 'p', NULL, "write a patch that git apply takes", set_patch },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

static void show(struct diff_options *options, struct diff_change *change)
{
    if (options->wants_patch)
        diff_print_patch(change);
    else if (change->letter == 0)
        return;
    else if (options->wants_stat)
        diff_stat_add(&options->stat, change);
    else
        diff_print_name(change);
}

static int handle_message(const json_t *message, void *context)
{
    cleanup_with(diff_change_done) struct diff_change change = { .letter = 0 };
    struct diff_options *options = context;
    struct err err;

    if (options->output.wants_json) {
        (void)json_dumpf(message, stdout, JSON_COMPACT);
        (void)printf("\n");
        return STATUS_OK;
    }
    if (diff_change_read(message, &change, &err) < 0)
        return report_unreadable(err.msg);
    show(options, &change);
    return STATUS_OK;
}

static int diff_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 3, "an ID and at most FROM and TO" };
    cleanup_with(options_done) struct diff_options options = { .wants_stat = false };
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_diff, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_diff, &operands, argc - next))
        return STATUS_HOLT;
    if (options.wants_stat && options.wants_patch && !options.output.wants_json)
        return command_misused(&command_diff, "shows either --stat or --patch");
    status = call_stream("holt.v1.SnapshotService/Diff",
                         json_pack("{s:s, s:s, s:s, s:b, s:b}", "sandboxId", argv[next], "from",
                                   argc - next > 1 ? argv[next + 1] : "", "to",
                                   argc - next > 2 ? argv[next + 2] : "", "lines",
                                   options.wants_stat, "patch", options.wants_patch),
                         handle_message, &options, &error);
    if (status == 0 && options.wants_stat && !options.output.wants_json)
        diff_stat_print(&options.stat);
    (void)fflush(stdout);
    if (status < 0)
        return report_holt_error(&error);
    return status == 0 ? command_printed() : status;
}

const struct command command_diff = {
    .group = "Turns",
    .name = "diff",
    .operands = "ID [FROM [TO]]",
    .summary = "Show which files changed",
    .example = "holt diff work turn-0001 --patch | git apply",
    .options = &table,
    .run = diff_run,
};
