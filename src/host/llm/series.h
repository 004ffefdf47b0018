/* What each owner has used of each model since the daemon started, for its metrics.
 *
 * A counter must never fall, so a pair of owner and model that has counters keeps them. When
 * LLM_SERIES_MAX pairs have some, all others share the last one, which has names that no owner can
 * have. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/access/caller.h"
#include "gateway/request.h"
#include "gateway/usage.h"

#define LLM_SERIES_OTHER "_other"

enum { LLM_SERIES_MAX = 1000 };

struct llm_totals {
    uint64_t requests, refused; /* ended; refused by a budget */
    struct token_counts tokens;
    uint64_t money;
};

struct llm_series {
    char owner[OWNER_NAME_MAX + 1];
    char model[MODEL_NAME_MAX + 1];
    struct llm_totals totals;
};

struct llm_series_list {
    struct llm_series *items;
    size_t count, cap;
};

/* Returns the counters of a pair: those of LLM_SERIES_OTHER if there are too many pairs. They move
 * with the next call. */
struct llm_totals *llm_series_totals(struct llm_series_list *list, const char *owner,
                                     const char *model);

void llm_series_done(struct llm_series_list *list);

void llm_totals_add(struct llm_totals *to, const struct llm_totals *more);
