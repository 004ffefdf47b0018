// SPDX-License-Identifier: Apache-2.0
#include "host/llm/series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

static struct llm_series *series_find(const struct llm_series_list *list, const char *owner,
                                      const char *model)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].owner, owner) == 0 && strcmp(list->items[i].model, model) == 0)
            return &list->items[i];
    return NULL;
}

struct llm_totals *llm_series_totals(struct llm_series_list *list, const char *owner,
                                     const char *model)
{
    struct llm_series *found = series_find(list, owner, model);

    if (!found && list->count >= LLM_SERIES_MAX) {
        owner = model = LLM_SERIES_OTHER;
        found = series_find(list, owner, model);
    }
    if (found)
        return &found->totals;
    if (list->count == list->cap) {
        list->cap = list->cap * 2 + 16;
        list->items = xreallocarray(list->items, list->cap, sizeof(*list->items));
    }
    found = &list->items[list->count++];
    *found = (struct llm_series){ .owner = "" };
    (void)snprintf(found->owner, sizeof(found->owner), "%s", owner);
    (void)snprintf(found->model, sizeof(found->model), "%s", model);
    return &found->totals;
}

void llm_series_done(struct llm_series_list *list)
{
    free(list->items);
    *list = (struct llm_series_list){ .items = NULL };
}

void llm_totals_add(struct llm_totals *to, const struct llm_totals *more)
{
    to->requests += more->requests;
    to->refused += more->refused;
    to->tokens.input += more->tokens.input;
    to->tokens.cache_read += more->tokens.cache_read;
    to->tokens.cache_write += more->tokens.cache_write;
    to->tokens.output += more->tokens.output;
    to->money += more->money;
}
