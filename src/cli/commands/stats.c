// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/table.h"
#include "cli/core/terminal.h"
#include "holt.h"

enum {
    STATUS_ENOUGH = -2,
    SHORT_MS = 250
}; /* of one look: over this time processors are counted */

struct stats_options {
    struct output_options output;
    bool is_once;
    uint64_t interval_ms;

    unsigned messages; /* that have come */
    unsigned lines;    /* on the terminal, to be drawn over */
};

static int set_no_stream(void *into, const char *value, struct err *err)
{
    struct stats_options *options = into;

    (void)value, (void)err;
    options->is_once = true;
    return 0;
}

static int set_interval(void *into, const char *value, struct err *err)
{
    struct stats_options *options = into;

    if (parse_duration_ms(value, &options->interval_ms) < 0 || options->interval_ms == 0)
        return err_set(err, ERR_INVALID, "--interval '%.100s' is not a time like 2s", value);
    return 0;
}

static const struct option_row rows[] = {
    { "no-stream", 0, NULL, "show it once, as when stdout is no terminal", set_no_stream },
    { "interval", 0, "TIME", "how often to look: 1s by default", set_interval },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

/* "12.0 MiB / 64.0 MiB", or without a limit the first alone. */
static void add_share(struct table *cells, uint64_t used, uint64_t limit)
{
    char used_text[CELL_SIZE], limit_text[CELL_SIZE];

    format_size(used_text, used);
    format_size(limit_text, limit);
    if (limit == 0)
        table_add(cells, "%s", used_text);
    else
        table_add(cells, "%s / %s", used_text, limit_text);
}

static void add_age(struct table *cells, uint64_t ms)
{
    static const struct {
        uint64_t ms;
        char unit;
    } units[] = { { 86400000, 'd' }, { 3600000, 'h' }, { 60000, 'm' }, { 1000, 's' } };

    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        if (ms >= units[i].ms || i + 1 == ARRAY_SIZE(units)) {
            table_add(cells, "%" PRIu64 "%c", ms / units[i].ms, units[i].unit);
            return;
        }
    }
}

static void add_row(struct table *cells, const json_t *stats)
{
    const char *name = call_text(stats, "sandboxName");
    uint64_t cpu = call_number(stats, "cpuMillis");

    table_add(cells, "%s", *name ? name : call_text(stats, "sandboxId"));
    table_add(cells, "%s", call_text(stats, "state"));
    table_add(cells, "%" PRIu64 ".%" PRIu64 "%%", cpu / 10, cpu % 10);
    add_share(cells, call_number(stats, "memoryBytes"), call_number(stats, "memoryLimitBytes"));
    table_add(cells, "%" PRIu64, call_number(stats, "pids"));
    table_add(cells, "%" PRIu64, call_number(stats, "processes"));
    add_share(cells, call_number(stats, "spaceUsed"), call_number(stats, "quotaBytes"));
    add_age(cells, call_number(stats, "ageMs"));
}

/* As many rows as the terminal has room for, where there is one. */
static unsigned draw(const json_t *list, size_t most)
{
    static const char *const titles[] = { "SANDBOX", "STATE",     "CPU",     "MEMORY",
                                          "PIDS",    "PROCESSES", "STORAGE", "AGE" };
    cleanup_with(table_done) struct table cells = { titles, ARRAY_SIZE(titles), 0xf4, NULL, 0 };
    size_t count = json_array_size(list) < most ? json_array_size(list) : most;

    for (size_t i = 0; i < count; i++)
        add_row(&cells, json_array_get(list, i));
    table_print(&cells);
    return (unsigned)count + 1;
}

/* Over what was drawn before. */
static int redraw(struct stats_options *options, const json_t *list)
{
    uint32_t height, width;

    terminal_size(&height, &width);
    if (options->lines > 0)
        (void)printf("\033[%uA\033[J", options->lines);
    options->lines = draw(list, height > 2 ? height - 2 : 1);
    return command_printed();
}

/* What processors did shows from the second message on. */
static int handle_message(const json_t *message, void *context)
{
    struct stats_options *options = context;
    const json_t *list = NULL;

    if (!call_list(message, "stats", &list))
        return STATUS_HOLT;
    if (!options->is_once)
        return redraw(options, list);
    if (options->messages++ == 0)
        return STATUS_OK;
    if (options->output.wants_json) {
        int status = print_json(list);

        return status == STATUS_OK ? STATUS_ENOUGH : status;
    }
    (void)draw(list, SIZE_MAX);
    return command_printed() == STATUS_OK ? STATUS_ENOUGH : STATUS_HOLT;
}

static json_t *make_request(const struct stats_options *options, char **ids, int count)
{
    json_t *list = json_array();

    for (int i = 0; i < count; i++)
        if (json_array_append_new(list, json_string(ids[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    return json_pack("{s:o, s:o}", "sandboxIds", list, "intervalMs",
                     json_u64(options->interval_ms));
}

static int stats_run(int argc, char **argv)
{
    struct stats_options options = { .is_once = false };
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_stats, &options, argc, argv, &next, &status))
        return status;
    if (options.output.wants_json || !isatty(STDOUT_FILENO) || terminal_is_dumb())
        options.is_once = true;
    if (options.is_once && options.interval_ms == 0)
        options.interval_ms = SHORT_MS;
    status = call_stream("holt.v1.SandboxService/WatchStats",
                         make_request(&options, argv + next, argc - next), handle_message, &options,
                         &error);
    if (status == STATUS_ENOUGH)
        return STATUS_OK;
    return status < 0 ? report_holt_error(&error) : status;
}

const struct command command_stats = {
    .group = "Sandboxes",
    .name = "stats",
    .operands = "[ID...]",
    .summary = "Show what sandboxes use, again and again",
    .options = &table,
    .run = stats_run,
};
