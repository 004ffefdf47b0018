// SPDX-License-Identifier: Apache-2.0
/* The commands that import, commit, list and remove templates; template_build.c builds them. */
#include "cli/template/templates.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/each.h"
#include "cli/core/output.h"
#include "cli/core/progress.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/options/source_size.h"
#include "holt.h"

/* --- import, commit --------------------------------------------------------------------------- */

struct import {
    struct progress progress;
    bool has_source; /* the daemon tells how much of the archive it has read */
    char label[64];
};

static void progress_to(struct progress *progress, uint64_t bytes)
{
    progress_add(progress, bytes > progress->done ? bytes - progress->done : 0);
}

static void source_show(void *context, uint64_t bytes, uint64_t total)
{
    struct import *import = context;

    import->has_source = true;
    import->progress.total = total;
    progress_to(&import->progress, bytes);
}

static int progress_show(void *context, uint64_t bytes, uint64_t files)
{
    struct import *import = context;

    (void)snprintf(import->label, sizeof(import->label), "%" PRIu64 " files", files);
    if (!import->has_source)
        progress_to(&import->progress, bytes);
    return 0;
}

int template_import(const char *name, const char *path,
                    const struct holt_template_settings *settings,
                    const struct output_options *output)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_import_options options = HOLT_INIT(holt_import_options);
    cleanup_result struct holt_template *template = NULL;
    struct import import = { .label = "" };
    struct holt_error error;
    int r;

    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    options.name = name;
    options.path = path;
    options.settings = settings;
    options.on_progress = progress_show;
    options.on_source = source_show;
    options.context = &import;
    progress_begin(&import.progress, import.label, 0);
    source_size_set(&import.progress, path);
    r = holt_template_import(connection.holt, &options, HOLT_NO_DEADLINE, &template, &error);
    progress_end(&import.progress);
    if (r < 0)
        return report_holt_error(&error);
    return output_id(output, template, "template", template->name);
}

static int template_import_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 2, "a NAME and a PATH" };
    struct output_options options = { .wants_json = false };
    cleanup_free char *path = NULL;
    int next, status;

    if (!command_parse(&command_template_import, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_template_import, &operands, argc - next))
        return STATUS_HOLT;
    path = realpath(argv[next + 1], NULL);
    if (!path)
        return report("template import: %s: %s", argv[next + 1], strerror(errno));
    return template_import(argv[next], path, NULL, &options);
}

const struct command command_template_import = {
    .group = "Templates",
    .name = "template import",
    .operands = "NAME PATH",
    .summary = "Import a directory, an archive or an image as a template",
    .example = "holt template import debian rootfs.tar.zst",
    .options = &option_table_output,
    .run = template_import_run,
};

static int template_commit_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 2, "an ID and a NAME" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_template *template = NULL;
    struct output_options options = { .wants_json = false };
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_template_commit, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_template_commit, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_template_commit(connection.holt, argv[next], argv[next + 1], HOLT_NO_DEADLINE,
                             &template, &error) < 0)
        return report_holt_error(&error);
    return output_id(&options, template, "template", template->name);
}

const struct command command_template_commit = {
    .group = "Templates",
    .name = "template commit",
    .operands = "ID NAME",
    .summary = "Create a template from the current files of a sandbox",
    .example = "holt template commit work work-base",
    .options = &option_table_output,
    .run = template_commit_run,
};

/* --- ls, rm ----------------------------------------------------------------------------------- */

enum { DIGEST_SHOWN = 19 }; /* "sha256:" and twelve digits, as other tools show them */

struct ls_options {
    struct output_options output;
    bool wants_all;
};

static const struct option_row ls_rows[] = {
    { "all", 'a', NULL, "include internal templates of builds",
      OPTION_FLAG(struct ls_options, wants_all) },
    OPTION_BYTES,
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_QUIET_NAMES,
    OPTION_HELP,
};

static const struct option_table ls_table = { ls_rows, ARRAY_SIZE(ls_rows), NULL };

/* The template of the host itself has no time of creation. */
static void format_created(char cell[CELL_SIZE], int64_t ms)
{
    time_t when = (time_t)(ms / 1000);
    struct tm utc;

    if (ms == 0 || !gmtime_r(&when, &utc) ||
        strftime(cell, CELL_SIZE, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        (void)snprintf(cell, CELL_SIZE, "-");
}

static const char *row_id(const void *result, size_t row)
{
    return ((const struct holt_template_list *)result)->items[row]->name;
}

static const char *row_owner(const void *result, size_t row)
{
    return ((const struct holt_template_list *)result)->items[row]->owner_name;
}

static void row_add(struct table *cells, const void *options, const void *result, size_t row)
{
    const struct holt_template *template = ((const struct holt_template_list *)result)->items[row];
    char size[CELL_SIZE] = "-", shared[CELL_SIZE] = "-";
    char count[CELL_SIZE] = "-", created[CELL_SIZE];

    if (template->files > 0) {
        output_size(options, size, template->size_bytes);
        output_size(options, shared, template->shared_bytes);
        (void)snprintf(count, sizeof(count), "%" PRIu64, template->files);
    }
    format_created(created, template->created_ms);
    table_add(cells, "%s", template->name);
    table_add(cells, "%s", template->kind);
    table_add(cells, "%s", size);
    table_add(cells, "%s", shared);
    table_add(cells, "%s", count);
    table_add(cells, "%s", created);
    table_add(cells, "%.*s", DIGEST_SHOWN, *template->digest ? template->digest : "-");
    if (((const struct ls_options *)options)->wants_all)
        table_add(cells, "%s", *template->owner ? template->owner : "-");
}

static int ls_print(const struct ls_options *options, const struct holt_template_list *list)
{
    static const char *const titles[] = { "NAME",  "KIND",    "SIZE",   "SHARED",
                                          "FILES", "CREATED", "DIGEST", "PART OF" };
    const struct listing listing = {
        .result = list,
        .field = "templates",
        .count = list->count,
        .titles = titles,
        .columns = ARRAY_SIZE(titles) - !options->wants_all,
        .right = 0x1c,
        .flexible = 0x81,
        .spare = 0x60,
        .id = row_id,
        .add = row_add,
        .owner = row_owner,
    };

    return listing_print(&listing, options);
}

static int template_ls_run(int argc, char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct ls_options options = { .wants_all = false };
    cleanup_result struct holt_template_list *list = NULL;
    struct holt_error error;
    int status, r;

    if (!connection_open_for(&command_template_ls, &options, argc, argv, &connection, &status))
        return status;
    if (options.wants_all)
        r = holt_template_list_all(connection.holt, HOLT_NO_DEADLINE, &list, &error);
    else
        r = holt_template_list(connection.holt, HOLT_NO_DEADLINE, &list, &error);
    if (r < 0)
        return report_holt_error(&error);
    return ls_print(&options, list);
}

const struct command command_template_ls = {
    .group = "Templates",
    .name = "template ls",
    .operands = "",
    .summary = "List templates",
    .options = &ls_table,
    .run = template_ls_run,
};

static int template_remove(struct holt *holt, const char *sandbox, const char *name,
                           struct holt_error *error)
{
    (void)sandbox;
    return holt_template_remove(holt, name, HOLT_NO_DEADLINE, error);
}

static int template_rm_run(int argc, char **argv)
{
    return each_run(&(struct each){ &command_template_rm, "a NAME", false, template_remove }, argc,
                    argv);
}

const struct command command_template_rm = {
    .group = "Templates",
    .name = "template rm",
    .operands = "TEMPLATE...",
    .summary = "Remove templates",
    .options = &each_force_table,
    .run = template_rm_run,
};
