/* What sandboxes and their owners have used of models, and what they may still use.
 *
 * A call reserves what it may take at most before it is sent, and is settled with what it took. A
 * reservation that is never settled, because Holt was killed in between, stays as it is. Both are
 * lines of one file, written before they count; they are not flushed, so a kill loses nothing and a
 * power cut the last second at most. Money is in billionths of a dollar. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/access/caller.h"
#include "gateway/request.h"
#include "gateway/usage.h"
#include "host/llm/series.h"

struct err;
struct llm_ledger;

enum { LLM_SANDBOX_SIZE = 64, LLM_NANO = 1000 * 1000 * 1000 };

/* 0 means without limit. Minutes and days are those of UTC. */
struct llm_budget {
    uint64_t requests_minute, requests_day;
    uint64_t tokens_minute, tokens_day;
    uint64_t money_minute, money_day;
};

/* What applies to one call. */
struct llm_budgets {
    struct llm_budget sandbox, owner;
};

struct llm_usage {
    uint64_t requests;
    uint64_t unsettled; /* of them: counted as reserved */
    struct token_counts tokens;
    uint64_t money;
};

/* One day of one sandbox with one model. */
struct llm_usage_row {
    uint64_t day; /* since 1970 */
    char sandbox[LLM_SANDBOX_SIZE];
    char owner[OWNER_NAME_MAX + 1];
    char model[MODEL_NAME_MAX + 1];
    struct llm_usage usage;
};

/* Billionths of a dollar for one token. */
struct llm_price {
    uint64_t input, cache_read, cache_write, output;
    bool is_known;
};

/* A call that is about to be sent. */
struct llm_call {
    const char *sandbox, *owner, *model;
    uint64_t input, output; /* tokens at most */
    uint64_t money;         /* for them */
    struct llm_price price; /* that it is settled with */
};

struct llm_refusal {
    char text[256];
    uint64_t retry_seconds;
    bool is_minute; /* of a minute, not of a day */
};

uint64_t llm_price_of(const struct llm_price *price, const struct token_counts *tokens);

/* Reads the file below a directory, which must stay open, or makes it. */
int llm_ledger_open(int dir_fd, struct llm_ledger **ret, struct err *err);
void llm_ledger_close(struct llm_ledger *ledger);

/* Reserves for a call. Returns 0 with a ticket, -EDQUOT with the reason, or -errno. */
int llm_ledger_reserve(struct llm_ledger *ledger, const struct llm_call *call,
                       const struct llm_budgets *budgets, uint64_t now_ms, uint64_t *ret_ticket,
                       struct llm_refusal *ret_refusal);

/* Settles a reservation, at the price of when it was made; one that is not known, or was settled
 * already, changes nothing. */
void llm_ledger_settle(struct llm_ledger *ledger, uint64_t ticket,
                       const struct token_counts *tokens);

/* Ends all reservations: what was under way may have been served, and counts as reserved. */
void llm_ledger_keep_all(struct llm_ledger *ledger);

/* Copies what has ended since the ledger was opened, by owner and model. The caller frees the
 * array.
 */
size_t llm_ledger_series(struct llm_ledger *ledger, struct llm_series **ret);

/* Copies the rows since a day, oldest first. The caller frees the array. */
size_t llm_ledger_rows(struct llm_ledger *ledger, uint64_t since_day, struct llm_usage_row **ret);
