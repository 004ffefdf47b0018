// SPDX-License-Identifier: Apache-2.0
/* The commands for codebases that may report conflicts. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

enum { HUNKS_SHOWN = 5, LINES_SHOWN = 5 };

static void side_report(const char *mark, const char *text)
{
    int shown = 0;

    for (const char *line = text, *next; *line; line = next, shown++) {
        const size_t len = strcspn(line, "\n");

        next = line + len + (line[len] == '\n');
        if (shown == LINES_SHOWN) {
            report_note("    %s ...", mark);
            return;
        }
        report_note("    %s %.*s", mark, (int)len, line);
    }
}

static void conflict_report(const struct holt_codebase_conflict *conflict)
{
    report_note("'%s' %s", conflict->path, conflict->reason);
    for (size_t i = 0; i < conflict->count && i < HUNKS_SHOWN; i++) {
        report_note("  line %" PRIu32 ", here < and there >:", conflict->hunks[i]->line);
        side_report("<", conflict->hunks[i]->ours);
        side_report(">", conflict->hunks[i]->theirs);
    }
    if (conflict->count > HUNKS_SHOWN)
        report_note("  and %zu more places", conflict->count - HUNKS_SHOWN);
}

static int conflicts_report(const struct holt_codebase_conflict *const *conflicts, size_t count,
                            uint64_t all, const char *remedy)
{
    struct err err;

    for (size_t i = 0; i < count; i++)
        conflict_report(conflicts[i]);
    (void)err_set(&err, ERR_BUSY, "nothing was written: conflicts in %" PRIu64 " paths", all);
    if (remedy)
        (void)err_remedy(&err, "%s", remedy);
    return report_err(&err);
}

struct apply_options {
    struct output_options output;
    uint32_t version; /* UINT32_MAX: the newest */
};

static const struct option_row apply_rows[] = {
    { "version", 0, "NUMBER", "the version to write; by default the newest",
      OPTION_U32(struct apply_options, version, 0, "a version") },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option_table apply_table = { apply_rows, ARRAY_SIZE(apply_rows), NULL };

static int codebase_apply_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 2, "a CODEBASE and at most one DIR" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_codebase_applying *applying = NULL;
    struct apply_options options = { .version = UINT32_MAX };
    char path[PATH_MAX];
    struct holt_codebase_target target = { .directory = NULL };
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_codebase_apply, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_codebase_apply, &operands, argc - next))
        return STATUS_HOLT;
    if (argc - next == 2 && !(target.directory = realpath(argv[next + 1], path)))
        return report_usage("cannot open directory '%s': %s", argv[next + 1], strerror(errno));
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (options.version != UINT32_MAX)
        target.version = &options.version;
    if (holt_codebase_apply(connection.holt, argv[next], &target, HOLT_NO_DEADLINE, &applying,
                            &error) < 0)
        return report_holt_error(&error);
    if (applying->conflict_count > 0)
        return conflicts_report(applying->conflicts, applying->count, applying->conflict_count,
                                NULL);
    if (options.output.wants_json)
        return output_json(applying, NULL);
    (void)printf("applied version %" PRIu32 " (%" PRIu64 " paths written)\n", applying->version,
                 applying->files);
    return command_printed();
}

struct merge_options {
    struct output_options output;
    bool takes_ours, takes_theirs, writes_markers;
};

static const struct option_row merge_rows[] = {
    { "ours", 0, NULL, "where both sides have changed, keep what the sandbox has",
      OPTION_FLAG(struct merge_options, takes_ours) },
    { "theirs", 0, NULL, "where both sides have changed, take what the others have",
      OPTION_FLAG(struct merge_options, takes_theirs) },
    { "markers", 0, NULL,
      "where both sides have changed a text, write both into the file, between markers",
      OPTION_FLAG(struct merge_options, writes_markers) },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option_table merge_table = { merge_rows, ARRAY_SIZE(merge_rows), NULL };

static enum holt_codebase_side side_of(const struct merge_options *options)
{
    if (options->takes_ours)
        return HOLT_CODEBASE_OURS;
    if (options->writes_markers)
        return HOLT_CODEBASE_MARKERS;
    return options->takes_theirs ? HOLT_CODEBASE_THEIRS : HOLT_CODEBASE_NEITHER;
}

static int merging_print(const struct merge_options *options,
                         const struct holt_codebase_merging *merging)
{
    if (merging->conflict_count > 0)
        return conflicts_report(merging->conflicts, merging->count, merging->conflict_count,
                                "repeat it with --ours, --theirs or --markers");
    if (options->output.wants_json)
        return output_json(merging, NULL);
    (void)printf("took %" PRIu64 " paths; changes are those since version %" PRIu32 "\n",
                 merging->files, merging->base);
    return command_printed();
}

/* A merge has one operand more than a rebase. */
static int merging_run(const struct command *command, const struct operands *operands, int argc,
                       char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_codebase_merging *merging = NULL;
    struct merge_options options = { .takes_ours = false };
    struct holt_codebase_source source;
    struct holt_error error;
    int next, status, r;

    if (!command_parse(command, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(command, operands, argc - next))
        return STATUS_HOLT;
    if (options.takes_ours + options.takes_theirs + options.writes_markers > 1)
        return report_usage("--ours, --theirs and --markers exclude each other");
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    source = (struct holt_codebase_source){ .sandbox = argv[next + 1], .side = side_of(&options) };
    r = source.sandbox ? holt_codebase_merge(connection.holt, argv[next], &source, HOLT_NO_DEADLINE,
                                             &merging, &error)
                       : holt_codebase_rebase(connection.holt, argv[next], source.side,
                                              HOLT_NO_DEADLINE, &merging, &error);
    return r < 0 ? report_holt_error(&error) : merging_print(&options, merging);
}

static int rebase_run(int argc, char **argv)
{
    return merging_run(&command_rebase, &(struct operands){ 1, 1, "an ID" }, argc, argv);
}

static int merge_run(int argc, char **argv)
{
    return merging_run(&command_merge, &(struct operands){ 2, 2, "two IDs" }, argc, argv);
}

const struct command command_codebase_apply = {
    .group = "Codebases",
    .name = "codebase apply",
    .operands = "CODEBASE [DIR]",
    .summary = "Write a version to its directory of the host, as the owner of the directory",
    .example = "holt codebase apply app",
    .options = &apply_table,
    .run = codebase_apply_run,
};

const struct command command_rebase = {
    .group = "Codebases",
    .name = "rebase",
    .operands = "ID",
    .summary = "Take what others have committed into a sandbox (ends all processes)",
    .example = "holt rebase work && holt commit work",
    .options = &merge_table,
    .run = rebase_run,
};

const struct command command_merge = {
    .group = "Codebases",
    .name = "merge",
    .operands = "ID FROM",
    .summary = "Take what another sandbox has changed into this one (ends all processes)",
    .example = "holt merge work fork",
    .options = &merge_table,
    .run = merge_run,
};
