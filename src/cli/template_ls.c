// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/connect.h"
#include "cli/report.h"
#include "holt.h"

struct ls_options {
    struct common_options common;
    bool wants_json;
};

struct row {
    const char *name;
    const char *kind;
    uint64_t size_bytes;
    uint64_t files;
    uint64_t created_at;
};

enum { CELL_SIZE = 32 };

static int row_read(const json_t *template, struct row *ret, struct err *err)
{
    *ret = (struct row){ .name = "", .kind = "" };
    if (json_get_text(template, "name", &ret->name, err) < 0 ||
        json_get_text(template, "kind", &ret->kind, err) < 0 ||
        json_get_u64(template, "sizeBytes", &ret->size_bytes, err) < 0 ||
        json_get_u64(template, "files", &ret->files, err) < 0 ||
        json_get_u64(template, "createdAt", &ret->created_at, err) < 0)
        return -1;
    return 0;
}

static void format_size(char *cell, uint64_t bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024 && unit + 1 < ARRAY_SIZE(units)) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(cell, CELL_SIZE, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

/* What was never created, as the template of the host itself, has no time. */
static void format_time(char *cell, uint64_t seconds)
{
    time_t when = (time_t)seconds;
    struct tm utc;

    if (seconds == 0 || !gmtime_r(&when, &utc) ||
        strftime(cell, CELL_SIZE, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        (void)snprintf(cell, CELL_SIZE, "-");
}

static void row_print(const struct row *row, int name_width)
{
    char size[CELL_SIZE] = "-", files[CELL_SIZE] = "-", created[CELL_SIZE];

    if (row->files > 0) {
        format_size(size, row->size_bytes);
        (void)snprintf(files, sizeof(files), "%" PRIu64, row->files);
    }
    format_time(created, row->created_at);
    (void)printf("%-*s  %-8s  %10s  %9s  %s\n", name_width, row->name, row->kind, size, files,
                 created);
}

static int print_table(const json_t *templates)
{
    int name_width = (int)strlen("NAME");
    struct err err;
    struct row row;

    for (size_t i = 0; i < json_array_size(templates); i++) {
        if (row_read(json_array_get(templates, i), &row, &err) < 0)
            return report("the daemon's answer cannot be read: %s", err.msg);
        if ((int)strlen(row.name) > name_width)
            name_width = (int)strlen(row.name);
    }
    (void)printf("%-*s  %-8s  %10s  %9s  %s\n", name_width, "NAME", "KIND", "SIZE", "FILES",
                 "CREATED");
    for (size_t i = 0; i < json_array_size(templates); i++)
        if (row_read(json_array_get(templates, i), &row, &err) == 0)
            row_print(&row, name_width);
    return STATUS_OK;
}

static int print_json(const json_t *templates)
{
    if (!templates)
        (void)printf("[]");
    else
        (void)json_dumpf(templates, stdout, JSON_INDENT(2));
    (void)printf("\n");
    return STATUS_OK;
}

static int print_reply(const char *reply, bool wants_json)
{
    cleanup_json json_t *list = NULL;
    const json_t *templates = NULL;
    struct err err;
    int status;

    if (json_parse_object(reply, strlen(reply), &list, &err) < 0 ||
        json_get_array(list, "templates", &templates, &err) < 0)
        return report("the daemon's answer cannot be read: %s", err.msg);
    status = wants_json ? print_json(templates) : print_table(templates);
    return fflush(stdout) == 0 ? status : report("cannot write to stdout");
}

static int template_ls_run(int argc, char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct ls_options options = { .wants_json = false };
    cleanup_free char *reply = NULL;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_template_ls, &options, argc, argv, &next, &status))
        return status;
    if (next != argc)
        return command_misused(&command_template_ls, "takes no arguments");
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_call(connection.holt, "holt.v1.TemplateService/List", "{}", &reply, &error) < 0)
        return report_holt_error(&error);
    return print_reply(reply, options.wants_json);
}

static int set_output(void *into, const char *value, struct err *err)
{
    struct ls_options *options = into;

    if (strcmp(value, "json") != 0 && strcmp(value, "table") != 0)
        return err_set(err, ERR_INVALID, "--output is 'table' or 'json', not '%s'", value);
    options->wants_json = strcmp(value, "json") == 0;
    return 0;
}

static const struct option_row rows[] = {
    { "output", 'o', "FORMAT", "'table' (the default) or 'json'", set_output },
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

const struct command command_template_ls = {
    .name = "template ls",
    .operands = "",
    .summary = "List the templates",
    .options = &table,
    .run = template_ls_run,
};
