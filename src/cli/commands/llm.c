// SPDX-License-Identifier: Apache-2.0
/* The commands for models: which there are, and what sandboxes have used of them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

enum { NANOS_PER_DOLLAR = 1000 * 1000 * 1000, DOLLARS_SIZE = 32 };

struct usage_options {
    struct output_options output;
    uint32_t days;
    const char *label, *owner;
};

static const struct option_row list_rows[] = { OPTION_OUTPUT, OPTION_JSON, OPTION_QUIET_NAMES,
                                               OPTION_HELP };
static const struct option_table list_table = { list_rows, ARRAY_SIZE(list_rows), NULL };

static const struct option_row usage_rows[] = {
    { "days", 0, "N", "days until now, with today; 1 if not given",
      OPTION_U32(struct usage_options, days, 1, "a number of days like 7") },
    { "label", 0, "KEY=VALUE", "only of sandboxes that exist and have this label",
      OPTION_TEXT(struct usage_options, label) },
    { "owner", 0, "OWNER", "only of this owner", OPTION_TEXT(struct usage_options, owner) },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_HELP,
};
static const struct option_table usage_table = { usage_rows, ARRAY_SIZE(usage_rows), NULL };

static void dollars_format(uint64_t nanos, unsigned digits, char ret[DOLLARS_SIZE])
{
    (void)snprintf(ret, DOLLARS_SIZE, "%.*f", (int)digits, (double)nanos / NANOS_PER_DOLLAR);
}

/* --- models --- */

static const char *model_id(const void *result, size_t row)
{
    return ((const struct holt_model_list *)result)->models[row]->name;
}

/* Prices are shown for a million tokens, as providers write them. */
static void model_add(struct table *cells, const void *options, const void *result, size_t row)
{
    const struct holt_model *model = ((const struct holt_model_list *)result)->models[row];
    char input[DOLLARS_SIZE] = "-", output[DOLLARS_SIZE] = "-";

    (void)options;
    if (model->has_price) {
        dollars_format(model->input_nanos * 1000 * 1000, 2, input);
        dollars_format(model->output_nanos * 1000 * 1000, 2, output);
    }
    table_add(cells, "%s", model->name);
    table_add(cells, "%s", model->kind);
    table_add(cells, "%s", model->provider);
    table_add(cells, "%s", model->upstream);
    table_add(cells, "%s", input);
    table_add(cells, "%s", output);
}

static int llm_models_run(int argc, char **argv)
{
    static const char *const titles[] = { "MODEL",    "KIND",   "PROVIDER",
                                          "UPSTREAM", "$/M IN", "$/M OUT" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct output_options options = { .wants_json = false };
    cleanup_result struct holt_model_list *list = NULL;
    struct holt_error error;
    int status;

    if (!connection_open_for(&command_llm_models, &options, argc, argv, &connection, &status))
        return status;
    if (holt_model_list(connection.holt, HOLT_NO_DEADLINE, &list, &error) < 0)
        return report_holt_error(&error);
    return listing_print(&(struct listing){ .result = list,
                                            .field = "models",
                                            .count = list->count,
                                            .titles = titles,
                                            .columns = ARRAY_SIZE(titles),
                                            .right = 0x30,
                                            .flexible = 0x8,
                                            .id = model_id,
                                            .add = model_add },
                         &options);
}

/* --- usage --- */

static const char *use_id(const void *result, size_t row)
{
    return ((const struct holt_model_usage *)result)->rows[row]->sandbox_id;
}

static void use_add(struct table *cells, const void *options, const void *result, size_t row)
{
    const struct holt_model_use *use = ((const struct holt_model_usage *)result)->rows[row];
    char cost[DOLLARS_SIZE];

    (void)options;
    dollars_format(use->cost_nanos, 4, cost);
    table_add(cells, "%s", use->day);
    table_add(cells, "%s", use->sandbox_id);
    table_add(cells, "%s", use->owner);
    table_add(cells, "%s", use->model);
    table_add(cells, "%" PRIu64, use->requests);
    table_add(cells, "%" PRIu64, use->input_tokens);
    table_add(cells, "%" PRIu64, use->cache_read_tokens);
    table_add(cells, "%" PRIu64, use->cache_write_tokens);
    table_add(cells, "%" PRIu64, use->output_tokens);
    table_add(cells, "%s", cost);
}

static int llm_usage_run(int argc, char **argv)
{
    static const char *const titles[] = { "DAY",      "SANDBOX", "OWNER",      "MODEL",
                                          "REQUESTS", "INPUT",   "CACHE READ", "CACHE WRITE",
                                          "OUTPUT",   "DOLLARS" };
    static const struct operands operands = { 0, 1, "at most one ID" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_model_usage_options request = HOLT_INIT(holt_model_usage_options);
    struct usage_options options = { .days = 0 };
    cleanup_result struct holt_model_usage *usage = NULL;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_llm_usage, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_llm_usage, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    request.days = options.days;
    request.label = options.label;
    request.owner = options.owner;
    request.sandbox = next < argc ? argv[next] : NULL;
    if (holt_model_usage(connection.holt, &request, HOLT_NO_DEADLINE, &usage, &error) < 0)
        return report_holt_error(&error);
    return listing_print(&(struct listing){ .result = usage,
                                            .field = "rows",
                                            .count = usage->count,
                                            .titles = titles,
                                            .columns = ARRAY_SIZE(titles),
                                            .right = 0x3f0,
                                            .flexible = 0x8,
                                            .id = use_id,
                                            .add = use_add },
                         &options.output);
}

const struct command command_llm_models = {
    .group = "Host",
    .name = "llm models",
    .operands = "",
    .summary = "List the models that sandboxes may use",
    .options = &list_table,
    .run = llm_models_run,
};

const struct command command_llm_usage = {
    .group = "Host",
    .name = "llm usage",
    .operands = "[ID]",
    .summary = "Show what sandboxes have used of models",
    .options = &usage_table,
    .run = llm_usage_run,
};
