// SPDX-License-Identifier: Apache-2.0
#include "host/llm/usage_metrics.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/access/caller.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "host/llm/llm.h"
#include "host/observe/metrics.h"

int metrics_write_models(struct llm *llm, struct buf *out)
{
    cleanup_free struct llm_series *series = NULL;
    size_t count = llm_series(llm, &series);
    struct llm_totals totals = { 0 };
    int r = 0;

    for (size_t i = 0; i < count; i++)
        llm_totals_add(&totals, &series[i].totals);
    const struct {
        const char *name, *help;
        uint64_t value;
    } rows[] = {
        { "holt_model_requests_total", "Requests to models that have ended.", totals.requests },
        { "holt_model_refused_total", "Requests to models that a budget has refused.",
          totals.refused },
        { "holt_model_input_tokens_total", "Tokens sent to models, not read from their caches.",
          totals.tokens.input },
        { "holt_model_cache_read_tokens_total", "Tokens that models have read from their caches.",
          totals.tokens.cache_read },
        { "holt_model_cache_write_tokens_total", "Tokens that models have written to their caches.",
          totals.tokens.cache_write },
        { "holt_model_output_tokens_total", "Tokens that models have made.", totals.tokens.output },
        { "holt_model_cost_nanodollars_total", "Billionths of a dollar that models have cost.",
          totals.money },
    };

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(rows); i++) {
        r = metric_begin(out, rows[i].name, METRIC_COUNTER, rows[i].help);
        if (r == 0)
            r = metric_add(out, rows[i].name, NULL, rows[i].value);
    }
    return r;
}

/* Keeps the series of the caller's own owner. A token with a scope sees only some sandboxes of its
 * owner, and the series are of all: it gets none. */
static size_t series_filter(const struct caller *caller, struct llm_series *series, size_t count)
{
    size_t kept = 0;

    if (caller_may_watch_host(caller))
        return count;
    if (caller->scope_count > 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        if (strcmp(series[i].owner, caller->owner) == 0)
            series[kept++] = series[i];
    return kept;
}

int metrics_write_owner_models(struct llm *llm, const struct caller *caller, struct buf *out)
{
    static const struct {
        const char *name, *help;
        const char *kind; /* further labels */
        size_t offset;
    } rows[] = {
        { "holt_owner_model_requests_total", "Requests of an owner to a model that have ended.", "",
          offsetof(struct llm_totals, requests) },
        { "holt_owner_model_refused_total", "Those that a budget has refused.", "",
          offsetof(struct llm_totals, refused) },
        { "holt_owner_model_cost_nanodollars_total", "Billionths of a dollar that they have cost.",
          "", offsetof(struct llm_totals, money) },
        { "holt_owner_model_tokens_total", "Tokens of an owner with a model.", ",kind=\"input\"",
          offsetof(struct llm_totals, tokens.input) },
        { "holt_owner_model_tokens_total", NULL, ",kind=\"cache-read\"",
          offsetof(struct llm_totals, tokens.cache_read) },
        { "holt_owner_model_tokens_total", NULL, ",kind=\"cache-write\"",
          offsetof(struct llm_totals, tokens.cache_write) },
        { "holt_owner_model_tokens_total", NULL, ",kind=\"output\"",
          offsetof(struct llm_totals, tokens.output) },
    };
    cleanup_free struct llm_series *series = NULL;
    char label[OWNER_NAME_MAX + MODEL_NAME_MAX + 64];
    size_t count = llm_series(llm, &series);
    int r = 0;

    count = series_filter(caller, series, count);
    for (size_t row = 0; r == 0 && row < ARRAY_SIZE(rows); row++) {
        if (rows[row].help)
            r = metric_begin(out, rows[row].name, METRIC_COUNTER, rows[row].help);
        for (size_t i = 0; r == 0 && i < count; i++) {
            const char *totals = (const char *)&series[i].totals;
            uint64_t value;

            memcpy(&value, totals + rows[row].offset, sizeof(value));
            (void)snprintf(label, sizeof(label), "owner=\"%s\",model=\"%s\"%s", series[i].owner,
                           series[i].model, rows[row].kind);
            r = metric_add(out, rows[row].name, label, value);
        }
    }
    return r;
}
