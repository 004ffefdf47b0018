// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/table.h"

struct ls_options {
    struct output_options output;
    bool wants_all;
};

/* What was never created, as the template of the host itself, has no time. */
static void format_time(char *cell, uint64_t seconds)
{
    time_t when = (time_t)seconds;
    struct tm utc;

    if (seconds == 0 || !gmtime_r(&when, &utc) ||
        strftime(cell, CELL_SIZE, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        (void)snprintf(cell, CELL_SIZE, "-");
}

static int row_add(struct table *table, const json_t *template, bool wants_owner)
{
    char size[CELL_SIZE] = "-", count[CELL_SIZE] = "-", created[CELL_SIZE];
    uint64_t size_bytes = 0, files = 0, created_at = 0;
    const char *owner = call_text(template, "owner");
    struct err err;

    if (json_get_u64(template, "sizeBytes", &size_bytes, &err) < 0 ||
        json_get_u64(template, "files", &files, &err) < 0 ||
        json_get_u64(template, "createdAt", &created_at, &err) < 0)
        return report_unreadable(err.msg);
    if (files > 0) {
        format_size(size, size_bytes);
        (void)snprintf(count, sizeof(count), "%" PRIu64, files);
    }
    format_time(created, created_at);
    table_add(table, "%s", call_text(template, "name"));
    table_add(table, "%s", call_text(template, "kind"));
    table_add(table, "%s", size);
    table_add(table, "%s", count);
    table_add(table, "%s", created);
    if (wants_owner)
        table_add(table, "%s", *owner ? owner : "-");
    return STATUS_OK;
}

static int print_table(const json_t *templates, bool wants_owner)
{
    static const char *const titles[] = { "NAME", "KIND", "SIZE", "FILES", "CREATED", "OWNER" };
    const size_t columns = ARRAY_SIZE(titles) - !wants_owner;
    cleanup_with(table_done) struct table table = { titles, columns, 0x0c, NULL, 0 };

    for (size_t i = 0; i < json_array_size(templates); i++)
        if (row_add(&table, json_array_get(templates, i), wants_owner) != STATUS_OK)
            return STATUS_HOLT;
    table_print(&table);
    return command_printed();
}

static int template_ls_run(int argc, char **argv)
{
    struct ls_options options = { .wants_all = false };
    cleanup_json json_t *reply = NULL;
    const json_t *templates = NULL;
    int next, status;

    if (!command_parse(&command_template_ls, &options, argc, argv, &next, &status))
        return status;
    if (next != argc)
        return command_misused(&command_template_ls, "takes no arguments");
    status = call_once("holt.v1.TemplateService/List", json_pack("{s:b}", "all", options.wants_all),
                       &reply);
    if (status != STATUS_OK)
        return status;
    if (!call_list(reply, "templates", &templates))
        return STATUS_HOLT;
    if (options.output.is_quiet)
        return print_texts(templates, "name");
    return options.output.wants_json ? print_json(templates)
                                     : print_table(templates, options.wants_all);
}

static int set_all(void *into, const char *value, struct err *err)
{
    struct ls_options *options = into;

    (void)value;
    (void)err;
    options->wants_all = true;
    return 0;
}

static const struct option_row rows[] = {
    { "all", 'a', NULL, "also those that builds have made for themselves", set_all },
    OPTION_OUTPUT,
    OPTION_QUIET_NAMES,
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

const struct command command_template_ls = {
    .group = "Templates",
    .name = "template ls",
    .operands = "",
    .summary = "List the templates",
    .options = &table,
    .run = template_ls_run,
};
