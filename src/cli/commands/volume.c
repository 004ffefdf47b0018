// SPDX-License-Identifier: Apache-2.0
/* The commands for volumes, which sandboxes share. */
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/each.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

static int volume_create_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "a NAME" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_volume *volume = NULL;
    struct output_options options = { .wants_json = false };
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_volume_create, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_volume_create, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_volume_create(connection.holt, argv[next], HOLT_NO_DEADLINE, &volume, &error) < 0)
        return report_holt_error(&error);
    if (options.wants_json || options.is_quiet)
        return output_id(&options, volume, "volume", volume->name);
    (void)printf("created volume %s\n", volume->name);
    return command_printed();
}

static const char *row_id(const void *result, size_t row)
{
    const struct holt_volume_list *list = result;

    return row < list->count ? list->items[row]->name : NULL;
}

/* Volumes without a record belong to root. */
static const char *row_owner(const void *result, size_t row)
{
    const struct holt_volume_list *list = result;

    return row < list->count ? list->items[row]->owner : "root";
}

/* Volumes without a record are behind the others. */
static void row_add(struct table *cells, const void *options, const void *result, size_t row)
{
    const struct holt_volume_list *list = result;

    (void)options;
    if (row < list->count) {
        table_add(cells, "%s", list->items[row]->name);
        table_add(cells, "%s", list->items[row]->id);
        return;
    }
    table_add(cells, "-");
    table_add(cells, "%s (no record; see holt volume adopt)",
              list->unrecorded[row - list->count]->id);
}

static int volumes_print(const struct output_options *options, const struct holt_volume_list *list)
{
    static const char *const titles[] = { "NAME", "ID" };
    const struct listing listing = {
        .result = list,
        .field = "volumes",
        .count = list->count + list->unrecorded_count,
        .titles = titles,
        .columns = ARRAY_SIZE(titles),
        .flexible = 0x1,
        .spare = 0x2,
        .id = row_id,
        .add = row_add,
        .owner = row_owner,
    };

    return listing_print(&listing, options);
}

static int volume_ls_run(int argc, char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct output_options options = { .wants_json = false };
    cleanup_result struct holt_volume_list *list = NULL;
    struct holt_error error;
    int status;

    if (!connection_open_for(&command_volume_ls, &options, argc, argv, &connection, &status))
        return status;
    if (holt_volume_list(connection.holt, HOLT_NO_DEADLINE, &list, &error) < 0)
        return report_holt_error(&error);
    return volumes_print(&options, list);
}

static int volume_remove(struct holt *holt, const char *sandbox, const char *volume,
                         struct holt_error *error)
{
    (void)sandbox;
    return holt_volume_remove(holt, volume, HOLT_NO_DEADLINE, error);
}

static int volume_rm_run(int argc, char **argv)
{
    return each_run(&(struct each){ &command_volume_rm, "a VOLUME", false, volume_remove }, argc,
                    argv);
}

struct adopt_options {
    struct output_options output;
    const char *name;
    const char *template_name;
};

static const struct option_row adopt_rows[] = {
    { "name", 0, "NAME", "the name of the sandbox or shared volume",
      OPTION_TEXT(struct adopt_options, name) },
    { "template", 't', "TEMPLATE", "the template of the sandbox, if the audit log does not tell",
      OPTION_TEXT(struct adopt_options, template_name) },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_QUIET,
    OPTION_HELP,
};

static const struct option_table adopt_table = { adopt_rows, ARRAY_SIZE(adopt_rows), NULL };

static int volume_adopt_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "a VOLUME" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_adopt_options request = HOLT_INIT(holt_adopt_options);
    struct adopt_options options = { .name = NULL };
    cleanup_result struct holt_adopted_volume *volume = NULL;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_volume_adopt, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_volume_adopt, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    request.name = options.name;
    request.template_name = options.template_name;
    if (holt_volume_adopt(connection.holt, argv[next], &request, HOLT_NO_DEADLINE, &volume,
                          &error) < 0)
        return report_holt_error(&error);
    if (options.output.wants_json)
        return output_json(volume, NULL);
    if (options.output.is_quiet)
        return output_id(&options.output, volume, NULL,
                         *volume->sandbox ? volume->sandbox : argv[next]);
    if (*volume->sandbox)
        (void)printf("adopted sandbox %s, which is stopped\n", volume->sandbox);
    else
        (void)printf("adopted volume %s\n", argv[next]);
    return command_printed();
}

const struct command command_volume_adopt = {
    .group = "Volumes",
    .name = "volume adopt",
    .operands = "UNRECORDED",
    .summary = "Record a volume that the registry has lost ('volume ls' shows them)",
    .example = "holt volume adopt sb-0123456789abcdef --name work",
    .options = &adopt_table,
    .run = volume_adopt_run,
};

const struct command command_volume_create = {
    .group = "Volumes",
    .name = "volume create",
    .operands = "NAME",
    .summary = "Create a volume that sandboxes can share",
    .example = "holt volume create data && holt create --volume data:/mnt/data",
    .options = &option_table_output,
    .run = volume_create_run,
};

const struct command command_volume_ls = {
    .group = "Volumes",
    .name = "volume ls",
    .operands = "",
    .summary = "List volumes",
    .options = &option_table_output_names,
    .run = volume_ls_run,
};

const struct command command_volume_rm = {
    .group = "Volumes",
    .name = "volume rm",
    .operands = "VOLUME...",
    .summary = "Remove volumes and their files",
    .options = &each_force_table,
    .run = volume_rm_run,
};
