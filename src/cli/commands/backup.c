// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/each.h"
#include "cli/core/output.h"
#include "cli/core/progress.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/transfer.h"
#include "holt.h"

/* --- create ----------------------------------------------------------------------------------- */

static int backup_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 2, "an ID and at most one SNAPSHOT" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_backup *backup = NULL;
    struct output_options options = { .wants_json = false };
    struct transfer_watch watch;
    struct holt_error error;
    int next, status, r;

    if (!command_parse(&command_backup, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_backup, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    transfer_watch_begin(&watch, "storing", argv[next]);
    r = holt_backup_create(connection.holt, argv[next], argc - next > 1 ? argv[next + 1] : NULL,
                           HOLT_NO_DEADLINE, &backup, &error);
    transfer_watch_end(&watch);
    return r < 0 ? report_holt_error(&error) : output_id(&options, backup, "backup", backup->name);
}

const struct command command_backup = {
    .group = "Backups",
    .name = "backup",
    .operands = "ID [SNAPSHOT]",
    .summary = "Copy a sandbox with its history to object storage",
    .example = "holt backup work    # prints the name of the backup",
    .options = &option_table_output,
    .run = backup_run,
};

/* --- ls --------------------------------------------------------------------------------------- */

static const char *row_id(const void *result, size_t row)
{
    return ((const struct holt_backup_list *)result)->items[row]->name;
}

static void row_add(struct table *cells, const void *options, const void *result, size_t row)
{
    const struct holt_backup *backup = ((const struct holt_backup_list *)result)->items[row];
    char size[CELL_SIZE], stored[CELL_SIZE], age[CELL_SIZE];

    output_size(options, size, backup->size_bytes);
    output_size(options, stored, backup->stored_bytes);
    format_age(age, backup->created_ms);
    table_add(cells, "%s", backup->name);
    table_add(cells, "%s", *backup->sandbox_name ? backup->sandbox_name : backup->sandbox);
    table_add(cells, "%s", *backup->snapshot ? backup->snapshot : "-");
    table_add(cells, "%s", size);
    table_add(cells, "%s", stored);
    table_add(cells, "%s", age);
}

static int backup_ls_run(int argc, char **argv)
{
    static const char *const titles[] = { "NAME", "SANDBOX", "SNAPSHOT", "SIZE", "STORED", "MADE" };
    static const struct operands operands = { 0, 1, "at most one ID" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_backup_list *list = NULL;
    struct output_options options = { .wants_json = false };
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_backup_ls, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_backup_ls, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_backup_list(connection.holt, next < argc ? argv[next] : NULL, HOLT_NO_DEADLINE, &list,
                         &error) < 0)
        return report_holt_error(&error);
    return listing_print(&(struct listing){ .result = list,
                                            .field = "backups",
                                            .count = list->count,
                                            .titles = titles,
                                            .columns = ARRAY_SIZE(titles),
                                            .right = 0x18,
                                            .flexible = 0x2,
                                            .spare = 0x4,
                                            .id = row_id,
                                            .add = row_add },
                         &options);
}

const struct command command_backup_ls = {
    .group = "Backups",
    .name = "backup ls",
    .operands = "[ID]",
    .summary = "List backups, of one sandbox or of all",
    .options = &option_table_output_names,
    .run = backup_ls_run,
};

/* --- rm --------------------------------------------------------------------------------------- */

static int backup_remove(struct holt *holt, const char *sandbox, const char *backup,
                         struct holt_error *error)
{
    (void)sandbox;
    return holt_backup_remove(holt, backup, HOLT_NO_DEADLINE, error);
}

static int backup_rm_run(int argc, char **argv)
{
    return each_run(&(struct each){ &command_backup_rm, "a NAME", false, backup_remove }, argc,
                    argv);
}

const struct command command_backup_rm = {
    .group = "Backups",
    .name = "backup rm",
    .operands = "NAME...",
    .summary = "Remove backups; 'holt backup gc' frees their space",
    .options = &each_force_table,
    .run = backup_rm_run,
};

/* --- restore ---------------------------------------------------------------------------------- */

struct restore_options {
    struct output_options output;
    const char *name;
};

static const struct option_row restore_rows[] = {
    { "name", 0, "NAME", "name of the new sandbox", OPTION_NAME(struct restore_options, name) },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_QUIET,
    OPTION_HELP,
};
static const struct option_table restore_table = { restore_rows, ARRAY_SIZE(restore_rows), NULL };

static int backup_restore_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "a NAME" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_sandbox *sandbox = NULL;
    struct restore_options options = { .name = NULL };
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_backup_restore, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_backup_restore, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_backup_restore(connection.holt, argv[next], options.name, HOLT_NO_DEADLINE, &sandbox,
                            &error) < 0)
        return report_holt_error(&error);
    return output_id(&options.output, sandbox, "sandbox", sandbox->id);
}

const struct command command_backup_restore = {
    .group = "Backups",
    .name = "backup restore",
    .operands = "NAME",
    .summary = "Create and start a sandbox from a backup, on any host with the same storage",
    .example = "holt backup restore sb-0123456789abcdef-89abcdef --name again",
    .options = &restore_table,
    .run = backup_restore_run,
};

/* --- gc --------------------------------------------------------------------------------------- */

static int backup_gc_run(int argc, char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_backup_collected *collected = NULL;
    struct output_options options = { .wants_json = false };
    char size[CELL_SIZE];
    struct holt_error error;
    int status;

    if (!connection_open_for(&command_backup_gc, &options, argc, argv, &connection, &status))
        return status;
    if (holt_backup_collect(connection.holt, HOLT_NO_DEADLINE, &collected, &error) < 0)
        return report_holt_error(&error);
    if (options.wants_json)
        return output_json(collected, NULL);
    format_size(size, collected->bytes);
    if (!options.is_quiet)
        (void)printf("removed %" PRIu64 " objects, %s\n", collected->objects, size);
    return command_printed();
}

const struct command command_backup_gc = {
    .group = "Backups",
    .name = "backup gc",
    .operands = "",
    .summary = "Free the space that no backup and no deep-paused sandbox uses",
    .options = &option_table_output,
    .run = backup_gc_run,
};
