// SPDX-License-Identifier: Apache-2.0
/* The commands for codebases. `holt changes` is in cli/diff. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/each.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/table.h"
#include "holt.h"

/* A word with a slash, or the name of a directory, is a directory; anything else is a volume. */
static const char *source_find(const char *word, char path[static PATH_MAX])
{
    struct stat st;

    if (!strchr(word, '/') && (stat(word, &st) < 0 || !S_ISDIR(st.st_mode)))
        return word;
    return realpath(word, path);
}

static int codebase_add_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 2, "a NAME and a SOURCE" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_codebase *codebase = NULL;
    struct output_options options = { .wants_json = false };
    char path[PATH_MAX];
    const char *source;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_codebase_add, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_codebase_add, &operands, argc - next))
        return STATUS_HOLT;
    source = source_find(argv[next + 1], path);
    if (!source)
        return report_usage("cannot open directory '%s': %s", argv[next + 1], strerror(errno));
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_codebase_add(connection.holt, argv[next], source, HOLT_NO_DEADLINE, &codebase,
                          &error) < 0)
        return report_holt_error(&error);
    if (options.wants_json || options.is_quiet)
        return output_id(&options, codebase, "codebase", codebase->name);
    (void)printf("added codebase %s from %s\n", codebase->name, codebase->source);
    return command_printed();
}

static const char *row_id(const void *result, size_t row)
{
    return ((const struct holt_codebase_list *)result)->items[row]->name;
}

static const char *row_owner(const void *result, size_t row)
{
    return ((const struct holt_codebase_list *)result)->items[row]->owner;
}

static void row_add(struct table *cells, const void *options, const void *result, size_t row)
{
    const struct holt_codebase *codebase = ((const struct holt_codebase_list *)result)->items[row];

    (void)options;
    table_add(cells, "%s", codebase->name);
    table_add(cells, "%" PRIu32, codebase->version);
    table_add(cells, "%s", codebase->source);
}

static int codebase_ls_run(int argc, char **argv)
{
    static const char *const titles[] = { "NAME", "VERSION", "SOURCE" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct output_options options = { .wants_json = false };
    cleanup_result struct holt_codebase_list *list = NULL;
    struct holt_error error;
    struct listing listing = { .field = "codebases",
                               .titles = titles,
                               .columns = ARRAY_SIZE(titles),
                               .flexible = 0x5,
                               .id = row_id,
                               .add = row_add,
                               .owner = row_owner };
    int status;

    if (!connection_open_for(&command_codebase_ls, &options, argc, argv, &connection, &status))
        return status;
    if (holt_codebase_list(connection.holt, HOLT_NO_DEADLINE, &list, &error) < 0)
        return report_holt_error(&error);
    listing.result = list;
    listing.count = list->count;
    return listing_print(&listing, &options);
}

static int codebase_remove(struct holt *holt, const char *sandbox, const char *codebase,
                           struct holt_error *error)
{
    (void)sandbox;
    return holt_codebase_remove(holt, codebase, HOLT_NO_DEADLINE, error);
}

static int codebase_rm_run(int argc, char **argv)
{
    return each_run(&(struct each){ &command_codebase_rm, "a CODEBASE", false, codebase_remove },
                    argc, argv);
}

static void version_add(struct table *cells, const void *options, const void *result, size_t row)
{
    const struct holt_codebase_version *version =
        ((const struct holt_codebase_log *)result)->items[row];
    char age[CELL_SIZE];

    (void)options;
    format_age(age, version->created_ms);
    table_add(cells, "%" PRIu32, version->version);
    table_add(cells, "%s", age);
    table_add(cells, "%" PRIu64, version->files);
    table_add(cells, "%s", *version->sandbox ? version->sandbox : "-");
    table_add(cells, "%s", version->message);
}

static const struct option_row log_rows[] = { OPTION_OUTPUT, OPTION_JSON, OPTION_HELP };

static const struct option_table log_table = { log_rows, ARRAY_SIZE(log_rows), NULL };

static int codebase_log_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "a CODEBASE" };
    static const char *const titles[] = { "VERSION", "CREATED", "FILES", "SANDBOX", "MESSAGE" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct output_options options = { .wants_json = false };
    cleanup_result struct holt_codebase_log *log = NULL;
    struct holt_error error;
    struct listing listing = { .field = "versions",
                               .titles = titles,
                               .columns = ARRAY_SIZE(titles),
                               .flexible = 0x10,
                               .add = version_add };
    int next, status;

    if (!command_parse(&command_codebase_log, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_codebase_log, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_codebase_log(connection.holt, argv[next], HOLT_NO_DEADLINE, &log, &error) < 0)
        return report_holt_error(&error);
    listing.result = log;
    listing.count = log->count;
    return listing_print(&listing, &options);
}

struct commit_options {
    struct output_options output;
    const char *message;
};

static const struct option_row commit_rows[] = {
    { "message", 'm', "TEXT", "what the log says about the version",
      OPTION_TEXT(struct commit_options, message) },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option_table commit_table = { commit_rows, ARRAY_SIZE(commit_rows), NULL };

static int commit_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "an ID" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_codebase_version *version = NULL;
    struct commit_options options = { .message = NULL };
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_commit, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_commit, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_codebase_commit(connection.holt, argv[next], options.message, HOLT_NO_DEADLINE,
                             &version, &error) < 0)
        return report_holt_error(&error);
    if (options.output.wants_json)
        return output_json(version, "version");
    (void)printf("committed version %" PRIu32 " (%" PRIu64 " paths changed)\n", version->version,
                 version->files);
    return command_printed();
}

static int discard_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 2, "an ID and at most one PATH" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_error error;
    int next, status;

    if (!command_parse_plain(&command_discard, &operands, argc, argv, &next, &status))
        return status;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_codebase_discard(connection.holt, argv[next], argc - next == 2 ? argv[next + 1] : NULL,
                              HOLT_NO_DEADLINE, &error) < 0)
        return report_holt_error(&error);
    return STATUS_OK;
}

const struct command command_codebase_add = {
    .group = "Codebases",
    .name = "codebase add",
    .operands = "NAME SOURCE",
    .summary = "Import a directory or a volume as version 0 of a codebase",
    .example = "holt codebase add app ~/src/app && holt create --name work --codebase app",
    .options = &option_table_output,
    .run = codebase_add_run,
};

const struct command command_codebase_ls = {
    .group = "Codebases",
    .name = "codebase ls",
    .operands = "",
    .summary = "List codebases",
    .options = &option_table_output_names,
    .run = codebase_ls_run,
};

const struct command command_codebase_log = {
    .group = "Codebases",
    .name = "codebase log",
    .operands = "CODEBASE",
    .summary = "List the versions of a codebase",
    .options = &log_table,
    .run = codebase_log_run,
};

const struct command command_codebase_rm = {
    .group = "Codebases",
    .name = "codebase rm",
    .operands = "CODEBASE...",
    .summary = "Remove codebases with all their versions",
    .options = &each_force_table,
    .run = codebase_rm_run,
};

const struct command command_commit = {
    .group = "Codebases",
    .name = "commit",
    .operands = "ID",
    .summary = "Make the next version of a sandbox's codebase",
    .example = "holt commit work -m 'fix the parser'",
    .options = &commit_table,
    .run = commit_run,
};

const struct command command_discard = {
    .group = "Codebases",
    .name = "discard",
    .operands = "ID [PATH]",
    .summary = "Undo the changes of a codebase since its version (ends all processes)",
    .example = "holt discard work src/main.c",
    .options = &option_table_help,
    .run = discard_run,
};
