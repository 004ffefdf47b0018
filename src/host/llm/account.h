/* What sandboxes and owners have used of models in this minute and on this day, with what is
 * reserved. Accounts of earlier days are forgotten from time to time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LLM_ACCOUNT_CHAINS = 1024 };

/* What was used in one window of time, with what is reserved. */
struct llm_window {
    uint64_t number; /* of the minute or day */
    uint64_t requests, tokens, money;
};

/* A sandbox or an owner. */
struct llm_account {
    struct llm_account *next;
    bool is_owner;
    unsigned reservations; /* that are open: it is kept */
    size_t last_row;       /* of a sandbox: its newest row, as an index + 1; 0: none */
    struct llm_window minute, day;
    char name[];
};

struct llm_accounts {
    struct llm_account *chains[LLM_ACCOUNT_CHAINS];
    size_t count, prune_at;
};

/* Finds an account, or makes it. It may be forgotten with the next call, unless it has a
 * reservation or was used today. */
struct llm_account *llm_account_of(struct llm_accounts *accounts, const char *name, bool is_owner,
                                   uint64_t today);

/* Notes that the first rows were dropped. */
void llm_accounts_shift(struct llm_accounts *accounts, size_t dropped);
void llm_accounts_done(struct llm_accounts *accounts);

/* Begins a new window if the number is a later one. */
void llm_window_enter(struct llm_window *window, uint64_t number);

/* Adds a request that is reserved. */
void llm_window_add(struct llm_window *window, uint64_t number, uint64_t tokens, uint64_t money);

/* Replaces what was reserved by what was used, in the same window. */
void llm_window_correct(struct llm_window *window, const struct llm_window *old, uint64_t tokens,
                        uint64_t money);
