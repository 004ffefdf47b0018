// SPDX-License-Identifier: Apache-2.0
/* The commands for owners: what each uses, and the ceilings of that. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/each.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

enum { CEILINGS_MAX = 9 };

static const char *const ceiling_names[CEILINGS_MAX] = { "sandboxes", "memory",  "cpus",
                                                         "disk",      "pids",    "ttl",
                                                         "runtimes",  "network", "runtime-min" };

struct set_options {
    struct output_options output;
    const char *values[CEILINGS_MAX];
    bool is_unset[CEILINGS_MAX];
};

static int set_unset(void *into, const char *value, struct err *err)
{
    struct set_options *options = into;

    for (size_t i = 0; i < CEILINGS_MAX; i++) {
        if (strcmp(ceiling_names[i], value) == 0) {
            options->is_unset[i] = true;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID,
                   "unknown ceiling '%.40s': use sandboxes, memory, cpus, disk, pids, ttl, "
                   "runtimes, runtime-min or network",
                   value);
}

#define VALUE(index) OPTION_TEXT(struct set_options, values[index])

static const struct option_row set_rows[] = {
    { "sandboxes", 0, "N", "number of sandboxes; none: no ceiling", VALUE(0) },
    { "memory", 0, "SIZE", "sum of their memory limits: 8G", VALUE(1) },
    { "cpus", 0, "CPUS", "sum of their CPU limits: 4, 1.5", VALUE(2) },
    { "disk", 0, "SIZE", "sum of their quotas: 20G", VALUE(3) },
    { "pids", 0, "N", "sum of their limits of processes", VALUE(4) },
    { "ttl", 0, "TIME", "longest time to live of a sandbox: 24h", VALUE(5) },
    { "runtimes", 0, "NAMES", "comma-separated runtimes that they may use; all: every one",
      VALUE(6) },
    { "runtime-min", 0, "NAME", "weakest runtime that they may use; none: any", VALUE(8) },
    { "network", 0, "MODE", "none, allow or open", VALUE(7) },
    { "unset", 0, "CEILING", "use the one of holt.conf again; may be repeated",
      OPTION_CALL(set_unset) },
    OPTION_OUTPUT,
    OPTION_JSON,
    { "quiet", 'q', NULL, "print nothing", OPTION_CALL(option_set_quiet) },
    OPTION_HELP,
};

static const struct option_table set_table = { set_rows, ARRAY_SIZE(set_rows), NULL };

/* Returns the ceiling of this name. */
static const char *ceiling_value(const struct holt_owner *owner, const char *name)
{
    for (size_t i = 0; i < owner->ceiling_count; i++)
        if (strcmp(owner->ceilings[i]->name, name) == 0)
            return owner->ceilings[i]->value;
    return "-";
}

static void use_format(const struct output_options *options, const struct holt_owner *owner,
                       const char *name, char cell[CELL_SIZE])
{
    if (strcmp(name, "sandboxes") == 0)
        (void)snprintf(cell, CELL_SIZE, "%" PRIu64, owner->sandboxes);
    else if (strcmp(name, "memory") == 0)
        output_size_short(options, cell, owner->memory_bytes);
    else if (strcmp(name, "cpus") == 0)
        (void)snprintf(cell, CELL_SIZE, "%" PRIu64 ".%03" PRIu64, owner->cpu_millis / 1000,
                       owner->cpu_millis % 1000);
    else if (strcmp(name, "disk") == 0)
        output_size_short(options, cell, owner->disk_bytes);
    else if (strcmp(name, "pids") == 0)
        (void)snprintf(cell, CELL_SIZE, "%" PRIu64, owner->pids);
    else
        (void)snprintf(cell, CELL_SIZE, "-");
}

static const char *ceiling_id(const void *result, size_t row)
{
    return ((const struct holt_owner *)result)->ceilings[row]->name;
}

static void ceiling_add(struct table *cells, const void *options, const void *result, size_t row)
{
    const struct holt_owner *owner = result;
    const struct holt_owner_ceiling *ceiling = owner->ceilings[row];
    char used[CELL_SIZE];

    use_format(options, owner, ceiling->name, used);
    table_add(cells, "%s", ceiling->name);
    table_add(cells, "%s", used);
    table_add(cells, "%s", ceiling->value);
    table_add(cells, "%s", strcmp(ceiling->source, "none") == 0 ? "-" : ceiling->source);
}

static int owner_print(const struct output_options *options, const struct holt_owner *owner)
{
    static const char *const titles[] = { "WHAT", "USED", "CEILING", "SOURCE" };
    const struct listing listing = {
        .result = owner,
        .field = "owner",
        .count = owner->ceiling_count,
        .titles = titles,
        .columns = ARRAY_SIZE(titles),
        .right = 0x02,
        .flexible = 0x4,
        .id = ceiling_id,
        .add = ceiling_add,
    };

    return listing_print(&listing, options);
}

static const char *row_id(const void *result, size_t row)
{
    return ((const struct holt_owner_list *)result)->items[row]->name;
}

static void row_add(struct table *cells, const void *options, const void *result, size_t row)
{
    static const char *const shown[] = { "sandboxes", "memory", "cpus", "disk", "pids" };
    const struct holt_owner *owner = ((const struct holt_owner_list *)result)->items[row];
    char used[CELL_SIZE];

    table_add(cells, "%s", owner->name);
    for (size_t i = 0; i < ARRAY_SIZE(shown); i++) {
        const char *most = ceiling_value(owner, shown[i]);

        use_format(options, owner, shown[i], used);
        if (strcmp(most, "none") == 0)
            table_add(cells, "%s", used);
        else
            table_add(cells, "%s / %s", used, most);
    }
}

static const struct option_row list_rows[] = { OPTION_OUTPUT, OPTION_JSON, OPTION_BYTES,
                                               OPTION_QUIET_NAMES, OPTION_HELP };

static const struct option_table list_table = { list_rows, ARRAY_SIZE(list_rows), NULL };

static int owners_print(const struct output_options *options, const struct holt_owner_list *list)
{
    static const char *const titles[] = { "OWNER", "SANDBOXES", "MEMORY", "CPUS", "DISK", "PIDS" };
    const struct listing listing = {
        .result = list,
        .field = "owners",
        .count = list->count,
        .titles = titles,
        .columns = ARRAY_SIZE(titles),
        .right = 0x3e,
        .flexible = 0x1,
        .id = row_id,
        .add = row_add,
    };

    return listing_print(&listing, options);
}

static int owner_ls_run(int argc, char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct output_options options = { .wants_json = false };
    cleanup_result struct holt_owner_list *list = NULL;
    struct holt_error error;
    int status;

    if (!connection_open_for(&command_owner_ls, &options, argc, argv, &connection, &status))
        return status;
    if (holt_owner_list(connection.holt, HOLT_NO_DEADLINE, &list, &error) < 0)
        return report_holt_error(&error);
    return owners_print(&options, list);
}

static int owner_show_run(int argc, char **argv)
{
    static const struct operands operands = { 0, 1, "at most one OWNER" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct output_options options = { .wants_json = false };
    cleanup_result struct holt_owner *owner = NULL;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_owner_show, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_owner_show, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_owner_get(connection.holt, next < argc ? argv[next] : NULL, HOLT_NO_DEADLINE, &owner,
                       &error) < 0)
        return report_holt_error(&error);
    return owner_print(&options, owner);
}

static size_t settings_fill(const struct set_options *options,
                            struct holt_owner_setting settings[CEILINGS_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < CEILINGS_MAX; i++)
        if (options->values[i] || options->is_unset[i])
            settings[count++] = (struct holt_owner_setting){ ceiling_names[i], options->values[i] };
    return count;
}

static int owner_set_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "an OWNER" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_owner_options request = HOLT_INIT(holt_owner_options);
    struct holt_owner_setting settings[CEILINGS_MAX];
    struct set_options options = { .values = { NULL } };
    cleanup_result struct holt_owner *owner = NULL;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_owner_set, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_owner_set, &operands, argc - next))
        return STATUS_HOLT;
    request.settings = settings;
    request.count = settings_fill(&options, settings);
    if (request.count == 0)
        return command_misused(&command_owner_set, "needs a ceiling, such as --sandboxes 20");
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_owner_set(connection.holt, argv[next], &request, HOLT_NO_DEADLINE, &owner, &error) < 0)
        return report_holt_error(&error);
    return options.output.is_quiet ? 0 : owner_print(&options.output, owner);
}

static int owner_remove(struct holt *holt, const char *sandbox, const char *owner,
                        struct holt_error *error)
{
    (void)sandbox;
    return holt_owner_remove(holt, owner, HOLT_NO_DEADLINE, error);
}

static int owner_rm_run(int argc, char **argv)
{
    return each_run(&(struct each){ &command_owner_rm, "an OWNER", false, owner_remove }, argc,
                    argv);
}

const struct command command_owner_ls = {
    .group = "Host",
    .name = "owner ls",
    .operands = "",
    .summary = "List owners with what they use",
    .options = &list_table,
    .run = owner_ls_run,
};

const struct command command_owner_show = {
    .group = "Host",
    .name = "owner show",
    .operands = "[OWNER]",
    .summary = "Show what an owner uses, and its ceilings",
    .options = &list_table,
    .run = owner_show_run,
};

const struct command command_owner_set = {
    .group = "Host",
    .name = "owner set",
    .operands = "OWNER",
    .summary = "Set ceilings of an owner",
    .options = &set_table,
    .run = owner_set_run,
};

const struct command command_owner_rm = {
    .group = "Host",
    .name = "owner rm",
    .operands = "OWNER...",
    .summary = "Remove the ceilings that were set for owners",
    .options = &each_force_table,
    .run = owner_rm_run,
};
