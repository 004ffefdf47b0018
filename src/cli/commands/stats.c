// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/terminal.h"
#include "holt.h"

enum { SHORT_MS = 250 }; /* the interval of the CPU usage if the table is shown once */

struct stats_options {
    struct output_options output;
    bool is_once;
    uint64_t interval_ms;

    unsigned reports; /* received so far */
    unsigned lines;   /* on the terminal, to be drawn over */
    bool is_done;
    int status; /* if is_done */
};

static const struct option_row rows[] = {
    { "no-stream", 0, NULL, "print the table once, as if stdout is not a terminal",
      OPTION_FLAG(struct stats_options, is_once) },
    { "interval", 0, "TIME", "time between updates; 1s by default",
      OPTION_DURATION(struct stats_options, interval_ms, 1, "a time like 2s") },
    OPTION_BYTES,
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

/* Adds "12.0M / 64.0M", or "12.0M" if there is no limit. */
static void add_share(struct table *cells, const struct output_options *output, uint64_t used,
                      uint64_t limit)
{
    char used_text[CELL_SIZE], limit_text[CELL_SIZE];

    output_size_short(output, used_text, used);
    output_size_short(output, limit_text, limit);
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

static void add_row(struct table *cells, const struct output_options *output,
                    const struct holt_stats *stats)
{
    table_add(cells, "%s", *stats->sandbox_name ? stats->sandbox_name : stats->sandbox_id);
    table_add(cells, "%s", stats->state);
    table_add(cells, "%" PRIu32 ".%" PRIu32 "%%", stats->cpu_millis / 10, stats->cpu_millis % 10);
    add_share(cells, output, stats->memory_bytes, stats->memory_limit_bytes);
    table_add(cells, "%" PRIu32, stats->pids);
    table_add(cells, "%" PRIu32, stats->processes);
    add_share(cells, output, stats->space_used_bytes, stats->quota_bytes);
    add_age(cells, stats->age_ms);
}

/* Prints at most this many rows; returns the number of lines. A table that is drawn over later is
 * clipped: a line that the terminal wraps would be two. */
static unsigned table_draw(const struct stats_options *options, const struct holt_stats_list *list,
                           size_t most)
{
    static const char *const titles[] = { "SANDBOX", "STATE", "CPU",     "MEMORY",
                                          "PIDS",    "PROCS", "STORAGE", "AGE" };
    cleanup_with(table_done) struct table cells = {
        .titles = titles,
        .columns = ARRAY_SIZE(titles),
        .right = 0xf4,
        .flexible = 0x1,
        .spare = 0x2,
        .is_clipped = !options->is_once,
    };
    size_t count = list->count < most ? list->count : most;

    for (size_t i = 0; i < count; i++)
        add_row(&cells, &options->output, list->items[i]);
    table_print(&cells);
    return (unsigned)count + 1;
}

/* Draws over the previous table, with as many rows as the terminal has room for. */
static int table_redraw(struct stats_options *options, const struct holt_stats_list *list)
{
    uint32_t height, width;

    terminal_size(&height, &width);
    if (options->lines > 0)
        (void)printf("\033[%uA\033[J", options->lines);
    options->lines = table_draw(options, list, height > 2 ? height - 2 : 1);
    return command_printed();
}

static int print_once(const struct stats_options *options, const struct holt_stats_list *list)
{
    if (options->output.wants_json)
        return output_json(list, "stats");
    (void)table_draw(options, list, SIZE_MAX);
    return command_printed();
}

/* The first report has no CPU usage. */
static int stats_take(void *context, const struct holt_stats_list *list)
{
    struct stats_options *options = context;

    if (!options->is_once) {
        options->status = table_redraw(options, list);
        options->is_done = options->status != STATUS_OK;
    } else if (options->reports++ > 0) {
        options->status = print_once(options, list);
        options->is_done = true;
    }
    return options->is_done;
}

static int watch(const struct command *command, int argc, char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_stats_options request = HOLT_INIT(holt_stats_options);
    struct stats_options options = { .status = STATUS_OK };
    struct holt_error error;
    int next, status;

    if (!command_parse(command, &options, argc, argv, &next, &status))
        return status;
    if (options.output.wants_json || !isatty(STDOUT_FILENO) || terminal_is_dumb())
        options.is_once = true;
    if (options.is_once && options.interval_ms == 0)
        options.interval_ms = SHORT_MS;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    request.sandboxes = (const char *const *)argv + next; /* argv ends with NULL */
    request.interval_ms = options.interval_ms;
    request.on_stats = stats_take;
    request.context = &options;
    if (holt_stats_watch(connection.holt, &request, HOLT_NO_DEADLINE, &error) < 0 &&
        !options.is_done)
        return report_holt_error(&error);
    return options.status;
}

static int stats_run(int argc, char **argv)
{
    return watch(&command_stats, argc, argv);
}

static int top_run(int argc, char **argv)
{
    return watch(&command_top, argc, argv);
}

const struct command command_stats = {
    .group = "Sandboxes",
    .name = "stats",
    .operands = "[ID...]",
    .summary = "Show the resource usage of sandboxes, live",
    .options = &table,
    .run = stats_run,
};

const struct command command_top = {
    .group = "Sandboxes",
    .name = "top",
    .operands = "[ID...]",
    .summary = "The same as stats",
    .options = &table,
    .run = top_run,
};
