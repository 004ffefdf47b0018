// SPDX-License-Identifier: Apache-2.0
#include "host/llm/account.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"

enum { PRUNE_MIN = 1024 };

static size_t chain_of(const char *name)
{
    uint32_t hash = 2166136261U; /* FNV-1a */

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619U;
    return hash % LLM_ACCOUNT_CHAINS;
}

/* Forgets what no budget of today can ask for. */
static void accounts_prune(struct llm_accounts *accounts, uint64_t today)
{
    for (size_t i = 0; i < LLM_ACCOUNT_CHAINS; i++) {
        for (struct llm_account **slot = &accounts->chains[i]; *slot;) {
            struct llm_account *each = *slot;

            if (each->reservations > 0 || each->day.number >= today) {
                slot = &each->next;
                continue;
            }
            *slot = each->next;
            free(each);
            accounts->count--;
        }
    }
    accounts->prune_at = accounts->count * 2 > PRUNE_MIN ? accounts->count * 2 : PRUNE_MIN;
}

struct llm_account *llm_account_of(struct llm_accounts *accounts, const char *name, bool is_owner,
                                   uint64_t today)
{
    struct llm_account **chain = &accounts->chains[chain_of(name)], *account = *chain;

    while (account && (account->is_owner != is_owner || strcmp(account->name, name) != 0))
        account = account->next;
    if (account)
        return account;
    if (accounts->count >= accounts->prune_at)
        accounts_prune(accounts, today);
    account = xcalloc(1, sizeof(*account) + strlen(name) + 1);
    memcpy(account->name, name, strlen(name) + 1);
    account->is_owner = is_owner;
    account->next = *chain;
    *chain = account;
    accounts->count++;
    return account;
}

void llm_accounts_shift(struct llm_accounts *accounts, size_t dropped)
{
    for (size_t i = 0; i < LLM_ACCOUNT_CHAINS; i++)
        for (struct llm_account *each = accounts->chains[i]; each; each = each->next)
            each->last_row -= each->last_row < dropped ? each->last_row : dropped;
}

void llm_accounts_done(struct llm_accounts *accounts)
{
    for (size_t i = 0; i < LLM_ACCOUNT_CHAINS; i++) {
        while (accounts->chains[i]) {
            struct llm_account *each = accounts->chains[i];

            accounts->chains[i] = each->next;
            free(each);
        }
    }
    accounts->count = 0;
}

void llm_window_enter(struct llm_window *window, uint64_t number)
{
    if (number > window->number)
        *window = (struct llm_window){ .number = number };
}

void llm_window_add(struct llm_window *window, uint64_t number, uint64_t tokens, uint64_t money)
{
    llm_window_enter(window, number);
    if (window->number != number)
        return;
    window->requests++;
    window->tokens += tokens;
    window->money += money;
}

void llm_window_correct(struct llm_window *window, const struct llm_window *old, uint64_t tokens,
                        uint64_t money)
{
    if (window->number != old->number)
        return;
    window->tokens = window->tokens - old->tokens + tokens;
    window->money = window->money - old->money + money;
}
