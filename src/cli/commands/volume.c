// SPDX-License-Identifier: Apache-2.0
/* The commands about volumes, which sandboxes share. */
#include <stdio.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/table.h"
#include "holt.h"

static int volume_create_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "a NAME" };
    cleanup_json json_t *reply = NULL;
    int next, status;

    if (!command_parse_plain(&command_volume_create, &operands, argc, argv, &next, &status))
        return status;
    status =
        call_once("holt.v1.VolumeService/Create", json_pack("{s:s}", "name", argv[next]), &reply);
    if (status != STATUS_OK)
        return status;
    (void)printf("created volume %s\n", call_text(call_object(reply, "volume"), "name"));
    return command_printed();
}

static int print_table(const json_t *volumes)
{
    static const char *const titles[] = { "NAME", "ID" };
    cleanup_with(table_done) struct table cells = { titles, ARRAY_SIZE(titles), 0, NULL, 0 };

    for (size_t i = 0; i < json_array_size(volumes); i++) {
        table_add(&cells, "%s", call_text(json_array_get(volumes, i), "name"));
        table_add(&cells, "%s", call_text(json_array_get(volumes, i), "id"));
    }
    table_print(&cells);
    return command_printed();
}

static const struct option_row list_rows[] = { OPTION_OUTPUT, OPTION_JSON, OPTION_QUIET,
                                               OPTION_HELP };

static const struct option_table list_table = { list_rows, ARRAY_SIZE(list_rows), NULL };

static int volume_ls_run(int argc, char **argv)
{
    struct output_options options = { .wants_json = false };
    cleanup_json json_t *reply = NULL;
    const json_t *volumes = NULL;
    int next, status;

    if (!command_parse(&command_volume_ls, &options, argc, argv, &next, &status))
        return status;
    if (next != argc)
        return command_misused(&command_volume_ls, "takes no arguments");
    status = call_once("holt.v1.VolumeService/List", json_object(), &reply);
    if (status != STATUS_OK)
        return status;
    if (!call_list(reply, "volumes", &volumes))
        return STATUS_HOLT;
    if (options.is_quiet)
        return print_texts(volumes, "name");
    return options.wants_json ? print_json(volumes) : print_table(volumes);
}

/* Goes on after a failure, as rm(1) does. */
static int volume_rm_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 0, "a VOLUME" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_error error;
    int next, status;

    if (!command_parse_plain(&command_volume_rm, &operands, argc, argv, &next, &status))
        return status;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    status = STATUS_OK;
    for (; next < argc; next++)
        if (call_try(connection.holt, "holt.v1.VolumeService/Remove",
                     json_pack("{s:s}", "volume", argv[next]), NULL, &error) < 0)
            status = report_holt_error(&error);
    return status;
}

const struct command command_volume_create = {
    .group = "Volumes",
    .name = "volume create",
    .operands = "NAME",
    .summary = "Make a volume for sandboxes to share",
    .example = "holt volume create data && holt create --volume data:/mnt/data",
    .options = &option_table_help,
    .run = volume_create_run,
};

const struct command command_volume_ls = {
    .group = "Volumes",
    .name = "volume ls",
    .operands = "",
    .summary = "List the volumes",
    .options = &list_table,
    .run = volume_ls_run,
};

const struct command command_volume_rm = {
    .group = "Volumes",
    .name = "volume rm",
    .operands = "VOLUME...",
    .summary = "Remove volumes and their files",
    .options = &option_table_help,
    .run = volume_rm_run,
};
