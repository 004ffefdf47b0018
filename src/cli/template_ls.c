// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/call.h"
#include "cli/command.h"
#include "cli/report.h"
#include "cli/table.h"

/* What was never created, as the template of the host itself, has no time. */
static void format_time(char *cell, uint64_t seconds)
{
    time_t when = (time_t)seconds;
    struct tm utc;

    if (seconds == 0 || !gmtime_r(&when, &utc) ||
        strftime(cell, CELL_SIZE, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        (void)snprintf(cell, CELL_SIZE, "-");
}

static int row_add(struct table *table, const json_t *template)
{
    char size[CELL_SIZE] = "-", count[CELL_SIZE] = "-", created[CELL_SIZE];
    uint64_t size_bytes = 0, files = 0, created_at = 0;
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
    return STATUS_OK;
}

static int print_table(const json_t *templates)
{
    static const char *const titles[] = { "NAME", "KIND", "SIZE", "FILES", "CREATED" };
    cleanup_with(table_done) struct table table = { titles, ARRAY_SIZE(titles), 0x0c, NULL, 0 };

    for (size_t i = 0; i < json_array_size(templates); i++)
        if (row_add(&table, json_array_get(templates, i)) != STATUS_OK)
            return STATUS_HOLT;
    table_print(&table);
    return command_printed();
}

static int template_ls_run(int argc, char **argv)
{
    struct output_options options = { .wants_json = false };
    cleanup_json json_t *reply = NULL;
    const json_t *templates = NULL;
    int next, status;

    if (!command_parse(&command_template_ls, &options, argc, argv, &next, &status))
        return status;
    if (next != argc)
        return command_misused(&command_template_ls, "takes no arguments");
    status = call_once("holt.v1.TemplateService/List", json_object(), &reply);
    if (status != STATUS_OK)
        return status;
    if (!call_list(reply, "templates", &templates))
        return STATUS_HOLT;
    if (options.is_quiet)
        return print_texts(templates, "name");
    return options.wants_json ? print_json(templates) : print_table(templates);
}

static const struct option_row rows[] = { OPTION_OUTPUT, OPTION_QUIET_NAMES, OPTION_HELP };

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

const struct command command_template_ls = {
    .group = "Templates",
    .name = "template ls",
    .operands = "",
    .summary = "List the templates",
    .options = &table,
    .run = template_ls_run,
};
