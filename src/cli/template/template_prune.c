// SPDX-License-Identifier: Apache-2.0
/* `holt template prune`. */
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

struct prune_options {
    struct output_options output;
    struct holt_template_prune_options request;
    bool is_forced;
};

static const struct option_row rows[] = {
    { "all", 'a', NULL, "also those that were imported, built or committed, not only images",
      OPTION_FLAG(struct prune_options, request.wants_all) },
    { "older", 0, "TIME", "only those that were made this long ago: 12h, 30d",
      OPTION_DURATION(struct prune_options, request.older_ms, 1, "a time like 12h or 30d") },
    { "dry-run", 'n', NULL, "print their names and remove nothing",
      OPTION_FLAG(struct prune_options, request.is_dry) },
    { "force", 'f', NULL, "do not ask", OPTION_FLAG(struct prune_options, is_forced) },
    OPTION_BYTES,
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_QUIET_NAMES,
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

/* Asks on a terminal; a script has to pass --force. */
static bool is_confirmed(const struct prune_options *options)
{
    char answer[8] = "";

    if (!isatty(STDIN_FILENO)) {
        (void)command_misused(&command_template_prune,
                              "removes templates; add --force, or --dry-run");
        return false;
    }
    (void)fprintf(stderr, "Remove all %s that nothing uses? [y/N] ",
                  options->request.wants_all ? "templates" : "images");
    return fgets(answer, sizeof(answer), stdin) && (*answer == 'y' || *answer == 'Y');
}

static const char *row_id(const void *result, size_t row)
{
    return ((const struct holt_template_pruned *)result)->items[row]->name;
}

static void row_add(struct table *cells, const void *options, const void *result, size_t row)
{
    const struct holt_template *template =
        ((const struct holt_template_pruned *)result)->items[row];
    char size[CELL_SIZE];

    output_size(options, size, template->size_bytes);
    table_add(cells, "%s", template->name);
    table_add(cells, "%s", template->kind);
    table_add(cells, "%s", size);
}

static int pruned_print(const struct prune_options *options,
                        const struct holt_template_pruned *pruned)
{
    static const char *const titles[] = { "NAME", "KIND", "SIZE" };
    char size[CELL_SIZE];
    int status = listing_print(&(struct listing){ .result = pruned,
                                                  .count = pruned->count,
                                                  .titles = titles,
                                                  .columns = ARRAY_SIZE(titles),
                                                  .right = 0x4,
                                                  .flexible = 0x1,
                                                  .id = row_id,
                                                  .add = row_add },
                               options);

    if (options->output.wants_json || options->output.is_quiet)
        return status;
    output_size(&options->output, size, pruned->freed_bytes);
    (void)fprintf(stderr, "%s %s\n", options->request.is_dry ? "would free" : "freed", size);
    return status;
}

static int template_prune_run(int argc, char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct prune_options options = { .request = HOLT_INIT(holt_template_prune_options) };
    cleanup_result struct holt_template_pruned *pruned = NULL;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_template_prune, &options, argc, argv, &next, &status))
        return status;
    if (next != argc)
        return command_misused(&command_template_prune, "takes no arguments");
    if (!options.is_forced && !options.request.is_dry && !is_confirmed(&options))
        return STATUS_HOLT;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_template_prune(connection.holt, &options.request, HOLT_NO_DEADLINE, &pruned, &error) <
        0)
        return report_holt_error(&error);
    return pruned_print(&options, pruned);
}

const struct command command_template_prune = {
    .group = "Templates",
    .name = "template prune",
    .operands = "",
    .summary = "Remove images, or all templates, that nothing uses",
    .example = "holt template prune --older 30d",
    .options = &table,
    .run = template_prune_run,
};
