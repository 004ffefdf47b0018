// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/table.h"

/* The turn of what is none is "-". */
static void turn_add(struct table *cells, const json_t *snapshot)
{
    json_int_t turn = json_integer_value(json_object_get(snapshot, "turn"));

    if (turn > 0)
        table_add(cells, "%" JSON_INTEGER_FORMAT, turn);
    else
        table_add(cells, "-");
}

static int row_add(struct table *cells, const json_t *snapshot, const char *base)
{
    const char *name = call_text(snapshot, "name"), *parent = call_text(snapshot, "parent");
    char age[CELL_SIZE], space[CELL_SIZE];
    uint64_t bytes = 0;
    struct err err;

    if (json_get_u64(snapshot, "spaceUsed", &bytes, &err) < 0)
        return report_unreadable(err.msg);
    format_age(age, call_text(snapshot, "createdAt"));
    format_size(space, bytes);
    table_add(cells, "%s", name);
    table_add(cells, "%s", call_text(snapshot, "kind"));
    turn_add(cells, snapshot);
    table_add(cells, "%s", *parent ? parent : "template");
    table_add(cells, "%s", age);
    table_add(cells, "%s", space);
    table_add(cells, "%s", strcmp(name, base) == 0 ? "<- now" : "");
    return STATUS_OK;
}

static int print_table(const json_t *snapshots, const char *base)
{
    static const char *const titles[] = {
        "NAME", "KIND", "TURN", "PARENT", "CREATED", "SPACE", ""
    };
    cleanup_with(table_done) struct table cells = { titles, ARRAY_SIZE(titles), 0x24, NULL, 0 };

    for (size_t i = 0; i < json_array_size(snapshots); i++)
        if (row_add(&cells, json_array_get(snapshots, i), base) != STATUS_OK)
            return STATUS_HOLT;
    table_print(&cells);
    return command_printed();
}

static const struct option_row rows[] = { OPTION_OUTPUT, OPTION_QUIET_NAMES, OPTION_HELP };

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

static int snapshots_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "an ID" };
    struct output_options options = { .wants_json = false };
    cleanup_json json_t *reply = NULL;
    const json_t *snapshots = NULL;
    int next, status;

    if (!command_parse(&command_snapshots, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_snapshots, &operands, argc - next))
        return STATUS_HOLT;
    status = call_once("holt.v1.SnapshotService/List", json_pack("{s:s}", "sandboxId", argv[next]),
                       &reply);
    if (status != STATUS_OK)
        return status;
    if (!call_list(reply, "snapshots", &snapshots))
        return STATUS_HOLT;
    if (options.is_quiet)
        return print_texts(snapshots, "name");
    return options.wants_json ? print_json(reply)
                              : print_table(snapshots, call_text(reply, "base"));
}

const struct command command_snapshots = {
    .group = "Turns",
    .name = "snapshots",
    .operands = "ID",
    .summary = "List the turns and snapshots of a sandbox",
    .options = &table,
    .run = snapshots_run,
};
