// SPDX-License-Identifier: Apache-2.0
/* The commands that remove sandboxes: those that are named, or all of a kind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "cli/commands/sandboxes.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/options/words.h"
#include "holt.h"

struct rm_options {
    struct output_options output;
    struct words labels;
    bool wants_all;
    bool is_forced;
    bool is_dry;
    bool *is_removed; /* for each sandbox of the list */
};

static void options_done(struct rm_options *options)
{
    words_done(&options->labels);
    free(options->is_removed);
}

static int set_label(void *into, const char *value, struct err *err)
{
    return words_add_label(&((struct rm_options *)into)->labels, value, err);
}

static int sandbox_remove(struct holt *holt, const char *sandbox, bool is_forced)
{
    struct holt_error error;

    if (holt_sandbox_destroy(holt, sandbox, HOLT_NO_DEADLINE, &error) == 0 ||
        (is_forced && strcmp(error.code, "not_found") == 0))
        return STATUS_OK;
    return report_holt_error(&error);
}

/* Removes sandboxes one by one and continues after a failure, as rm(1) does. Prints them as they
 * were if an output was asked for. */
static int each_remove(struct holt *holt, const struct rm_options *options, int count, char **ids)
{
    cleanup_with(sandbox_set_done) struct sandbox_set set = { .count = 0 };
    const bool prints = options->output.wants_json || options->output.is_quiet;
    int status = STATUS_OK;

    for (int i = 0; i < count; i++) {
        cleanup_result struct holt_sandbox *sandbox = NULL;
        struct holt_error ignored;

        if (prints && holt_sandbox_get(holt, ids[i], HOLT_NO_DEADLINE, &sandbox, &ignored) < 0)
            sandbox = NULL;
        if (sandbox_remove(holt, ids[i], options->is_forced) != STATUS_OK)
            status = STATUS_HOLT;
        else if (sandbox)
            sandbox_set_add(&set, TAKE_PTR(sandbox));
    }
    if (prints && sandbox_set_print(&set, &options->output, false) != STATUS_OK)
        status = STATUS_HOLT;
    return status;
}

/* Returns whether a sandbox of the list is to be removed. */
typedef bool wanted_fn(const struct holt_sandbox *sandbox);

static bool row_is_removed(const void *options, const void *result, size_t row)
{
    (void)result;
    return ((const struct rm_options *)options)->is_removed[row];
}

/* Prints the sandboxes that were removed, as they were. */
static int removed_print(const struct rm_options *options, const struct holt_sandbox_list *list)
{
    const struct listing listing = {
        .result = list,
        .field = "sandboxes",
        .count = list->count,
        .is_wanted = row_is_removed,
    };

    return options->output.wants_json ? listing_print(&listing, options) : command_printed();
}

/* Removes all sandboxes that have the labels and are wanted, and prints their ids. */
static int list_remove(struct holt *holt, struct rm_options *options, wanted_fn *is_wanted)
{
    cleanup_result struct holt_sandbox_list *list = NULL;
    struct holt_error error;
    int status = STATUS_OK;

    if (holt_sandbox_list(holt, (const char *const *)options->labels.items, HOLT_NO_DEADLINE, &list,
                          &error) < 0)
        return report_holt_error(&error);
    options->is_removed = xcalloc(list->count + 1, sizeof(*options->is_removed));
    for (size_t i = 0; i < list->count; i++) {
        const struct holt_sandbox *sandbox = list->items[i];

        if (is_wanted && !is_wanted(sandbox))
            continue;
        if (!options->is_dry && sandbox_remove(holt, sandbox->id, true) != STATUS_OK)
            status = STATUS_HOLT;
        else
            options->is_removed[i] = true;
        if (options->is_removed[i] && !options->output.wants_json)
            (void)printf("%s\n", sandbox->id);
    }
    return removed_print(options, list) == STATUS_OK ? status : STATUS_HOLT;
}

/* --- rm --------------------------------------------------------------------------------------- */

static const struct option_row rm_rows[] = {
    { "all", 'a', NULL, "remove all sandboxes", OPTION_FLAG(struct rm_options, wants_all) },
    { "label", 'l', "KEY=VALUE", "remove all with this label; may be repeated",
      OPTION_CALL(set_label) },
    { "force", 'f', NULL, "ignore operands that do not exist",
      OPTION_FLAG(struct rm_options, is_forced) },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_QUIET,
    OPTION_HELP,
};

static const struct option_table rm_table = { rm_rows, ARRAY_SIZE(rm_rows), NULL };

static int rm_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 0, "an ID, --all or --label" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_with(options_done) struct rm_options options = { .wants_all = false };
    int next, status;
    bool is_list;

    if (!command_parse(&command_rm, &options, argc, argv, &next, &status))
        return status;
    is_list = options.wants_all || options.labels.count > 0;
    if (is_list && next < argc)
        return command_misused(&command_rm, "takes either IDs, or --all or --label");
    if (!is_list && !command_has_operands(&command_rm, &operands, argc - next))
        return STATUS_HOLT;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (is_list)
        return list_remove(connection.holt, &options, NULL);
    return each_remove(connection.holt, &options, argc - next, argv + next);
}

const struct command command_rm = {
    .group = "Sandboxes",
    .name = "rm",
    .operands = "[ID...]",
    .summary = "Remove sandboxes and all their snapshots",
    .example = "holt rm --label team=red",
    .options = &rm_table,
    .run = rm_run,
};

/* --- prune ------------------------------------------------------------------------------------ */

static const struct option_row prune_rows[] = {
    { "label", 'l', "KEY=VALUE", "only those with this label; may be repeated",
      OPTION_CALL(set_label) },
    { "dry-run", 'n', NULL, "print their ids and remove nothing",
      OPTION_FLAG(struct rm_options, is_dry) },
    { "force", 'f', NULL, "do not ask", OPTION_FLAG(struct rm_options, is_forced) },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_QUIET,
    OPTION_HELP,
};

static const struct option_table prune_table = { prune_rows, ARRAY_SIZE(prune_rows), NULL };

static bool is_unused(const struct holt_sandbox *sandbox)
{
    return sandbox->state == HOLT_STATE_STOPPED || sandbox->state == HOLT_STATE_FAILED;
}

/* Asks on a terminal; a script has to pass --force. */
static bool is_confirmed(void)
{
    char answer[8] = "";

    if (!isatty(STDIN_FILENO)) {
        (void)command_misused(&command_prune, "removes files; add --force, or --dry-run");
        return false;
    }
    (void)fprintf(stderr, "Remove all stopped and failed sandboxes with their files? [y/N] ");
    return fgets(answer, sizeof(answer), stdin) && (*answer == 'y' || *answer == 'Y');
}

static int prune_run(int argc, char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_with(options_done) struct rm_options options = { .is_dry = false };
    int next, status;

    if (!command_parse(&command_prune, &options, argc, argv, &next, &status))
        return status;
    if (next != argc)
        return command_misused(&command_prune, "takes no arguments");
    if (!options.is_forced && !options.is_dry && !is_confirmed())
        return STATUS_HOLT;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    return list_remove(connection.holt, &options, is_unused);
}

const struct command command_prune = {
    .group = "Sandboxes",
    .name = "prune",
    .operands = "",
    .summary = "Remove all stopped and failed sandboxes",
    .example = "holt prune --dry-run",
    .options = &prune_table,
    .run = prune_run,
};
