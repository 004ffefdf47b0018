// SPDX-License-Identifier: Apache-2.0
#include "host/llm/ledger.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "host/llm/ledger_internal.h"

enum { SECONDS_PER_DAY = 24 * 60 * 60 };

uint64_t ledger_day_of(uint64_t ms)
{
    return ms / LEDGER_MINUTE_MS / LEDGER_DAY_MINUTES;
}

uint64_t ledger_tokens_sum(const struct token_counts *tokens)
{
    return tokens->input + tokens->cache_read + tokens->cache_write + tokens->output;
}

uint64_t llm_price_of(const struct llm_price *price, const struct token_counts *tokens)
{
    return tokens->input * price->input + tokens->cache_read * price->cache_read +
           tokens->cache_write * price->cache_write + tokens->output * price->output;
}

/* --- rows --- */

static bool row_is_of(const struct llm_usage_row *row, const struct llm_call *call)
{
    return strcmp(row->model, call->model) == 0 && strcmp(row->owner, call->owner) == 0;
}

static size_t row_add(struct llm_ledger *ledger, uint64_t day, const struct llm_call *call)
{
    struct llm_usage_row *row;

    if (ledger->row_count == ledger->row_cap) {
        ledger->row_cap = ledger->row_cap * 2 + 64;
        ledger->rows = xreallocarray(ledger->rows, ledger->row_cap, sizeof(*ledger->rows));
        ledger->previous =
            xreallocarray(ledger->previous, ledger->row_cap, sizeof(*ledger->previous));
    }
    row = &ledger->rows[ledger->row_count];
    *row = (struct llm_usage_row){ .day = day };
    (void)snprintf(row->sandbox, sizeof(row->sandbox), "%s", call->sandbox);
    (void)snprintf(row->owner, sizeof(row->owner), "%s", call->owner);
    (void)snprintf(row->model, sizeof(row->model), "%s", call->model);
    return ledger->row_count++;
}

size_t ledger_row_of(struct llm_ledger *ledger, uint64_t day, const struct llm_call *call)
{
    struct llm_account *account = llm_account_of(&ledger->accounts, call->sandbox, false, day);
    size_t found = account->last_row;

    while (found > 0 && ledger->rows[found - 1].day >= day) {
        if (ledger->rows[found - 1].day == day && row_is_of(&ledger->rows[found - 1], call))
            return found - 1;
        found = ledger->previous[found - 1];
    }
    found = row_add(ledger, day, call);
    ledger->previous[found] = account->last_row;
    account->last_row = found + 1;
    return found;
}

/* --- reservations, as they happen and as they are read --- */

void ledger_reservation_add(struct llm_ledger *ledger, const struct llm_call *call, uint64_t ticket,
                            uint64_t now_ms)
{
    struct reservation *new = xcalloc(1, sizeof(*new));
    uint64_t tokens = call->input + call->output, day = ledger_day_of(now_ms);
    struct llm_usage *usage;

    *new = (struct reservation){
        .next = ledger->open,
        .ticket = ticket,
        .ms = now_ms,
        .minute = { now_ms / LEDGER_MINUTE_MS, 1, tokens, call->money },
        .day = { day, 1, tokens, call->money },
        .input = call->input,
        .output = call->output,
        .price = call->price,
        .row = ledger_row_of(ledger, day, call),
    };
    for (int i = 0; i < 2; i++) {
        struct llm_account *account =
            llm_account_of(&ledger->accounts, i == 0 ? call->sandbox : call->owner, i == 1, day);

        account->reservations++;
        llm_window_add(&account->minute, new->minute.number, tokens, call->money);
        llm_window_add(&account->day, day, tokens, call->money);
        new->accounts[i] = account;
    }
    usage = &ledger->rows[new->row].usage;
    usage->requests++;
    usage->unsettled++;
    usage->tokens.input += call->input;
    usage->tokens.output += call->output;
    usage->money += call->money;
    ledger->open = new;
    if (ticket > ledger->last_ticket)
        ledger->last_ticket = ticket;
}

struct reservation *ledger_reservation_take(struct llm_ledger *ledger, uint64_t ticket)
{
    struct reservation **slot = &ledger->open, *found;

    while (*slot && (*slot)->ticket != ticket)
        slot = &(*slot)->next;
    found = *slot;
    if (!found)
        return NULL;
    *slot = found->next;
    for (size_t i = 0; i < ARRAY_SIZE(found->accounts); i++)
        found->accounts[i]->reservations--;
    return found;
}

static void series_add(struct llm_ledger *ledger, size_t row_index,
                       const struct token_counts *tokens, uint64_t money)
{
    const struct llm_usage_row *row = &ledger->rows[row_index];
    const struct llm_totals more = { .requests = 1, .tokens = *tokens, .money = money };

    llm_totals_add(llm_series_totals(&ledger->series, row->owner, row->model), &more);
}

void ledger_reservation_settle(struct llm_ledger *ledger, struct reservation *old,
                               const struct token_counts *tokens, uint64_t money)
{
    struct llm_usage *usage = &ledger->rows[old->row].usage;
    uint64_t sum = ledger_tokens_sum(tokens);

    series_add(ledger, old->row, tokens, money);
    for (size_t i = 0; i < ARRAY_SIZE(old->accounts); i++) {
        llm_window_correct(&old->accounts[i]->minute, &old->minute, sum, money);
        llm_window_correct(&old->accounts[i]->day, &old->day, sum, money);
    }
    usage->unsettled--;
    usage->tokens.input += tokens->input - old->input;
    usage->tokens.output += tokens->output - old->output;
    usage->tokens.cache_read += tokens->cache_read;
    usage->tokens.cache_write += tokens->cache_write;
    usage->money += money - old->day.money;
}

void ledger_reservations_end(struct llm_ledger *ledger)
{
    while (ledger->open) {
        cleanup_free struct reservation *each =
            ledger_reservation_take(ledger, ledger->open->ticket);

        series_add(ledger, each->row,
                   &(struct token_counts){ .input = each->input, .output = each->output },
                   each->day.money);
    }
}

/* --- life --- */

int llm_ledger_open(int dir_fd, struct llm_ledger **ret, struct err *err)
{
    struct llm_ledger *ledger = xcalloc(1, sizeof(*ledger));
    int r;

    ledger->dir_fd = dir_fd;
    ledger->fd = -EBADF;
    lock_init(&ledger->lock, LOCK_LLM);
    r = ledger_file_read(ledger, err);
    ledger_reservations_end(ledger); /* what was under way is not any more: it counts as reserved */
    llm_series_done(&ledger->series);
    if (r == 0) {
        r = ledger_file_write(ledger);
        if (r < 0)
            (void)err_sys(err, r, "write the use of models");
    }
    if (r < 0) {
        llm_ledger_close(ledger);
        return r;
    }
    *ret = ledger;
    return 0;
}

void llm_ledger_close(struct llm_ledger *ledger)
{
    if (!ledger)
        return;
    ledger_reservations_end(ledger);
    llm_accounts_done(&ledger->accounts);
    free(ledger->rows);
    free(ledger->previous);
    llm_series_done(&ledger->series);
    (void)fd_close(ledger->fd);
    lock_destroy(&ledger->lock);
    free(ledger);
}

/* --- budgets --- */

static bool limit_allows(uint64_t limit, uint64_t used, uint64_t more)
{
    return limit == 0 || (more <= limit && used <= limit - more);
}

/* Names the first limit that the call would exceed; NULL: none. */
static const char *budget_exceeded(const struct llm_budget *budget,
                                   const struct llm_account *account, const struct llm_call *call,
                                   bool *ret_is_minute)
{
    const struct llm_window *minute = &account->minute, *day = &account->day;
    uint64_t tokens = call->input + call->output;

    *ret_is_minute = true;
    if (!limit_allows(budget->requests_minute, minute->requests, 1))
        return "requests per minute";
    if (!limit_allows(budget->tokens_minute, minute->tokens, tokens))
        return "tokens per minute";
    if (!limit_allows(budget->money_minute, minute->money, call->money))
        return "money per minute";
    *ret_is_minute = false;
    if (!limit_allows(budget->requests_day, day->requests, 1))
        return "requests per day";
    if (!limit_allows(budget->tokens_day, day->tokens, tokens))
        return "tokens per day";
    if (!limit_allows(budget->money_day, day->money, call->money))
        return "money per day";
    return NULL;
}

/* Locked. */
static int budget_check(struct llm_ledger *ledger, const struct llm_call *call, bool is_owner,
                        const struct llm_budget *budget, uint64_t now_ms, struct llm_refusal *ret)
{
    const char *name = is_owner ? call->owner : call->sandbox, *what;
    struct llm_account *account =
        llm_account_of(&ledger->accounts, name, is_owner, ledger_day_of(now_ms));
    uint64_t second = now_ms / 1000;

    llm_window_enter(&account->minute, now_ms / LEDGER_MINUTE_MS);
    llm_window_enter(&account->day, ledger_day_of(now_ms));
    what = budget_exceeded(budget, account, call, &ret->is_minute);
    if (!what)
        return 0;
    ret->retry_seconds =
        ret->is_minute ? 60 - second % 60 : SECONDS_PER_DAY - second % SECONDS_PER_DAY;
    /* Some clients wait for as long as the end of the text says. */
    (void)snprintf(ret->text, sizeof(ret->text),
                   "the budget of %s '%s' is used up: %s (with what this request may take). Please "
                   "try again in %llus.",
                   is_owner ? "owner" : "sandbox", name, what,
                   (unsigned long long)ret->retry_seconds);
    return -EDQUOT;
}

int llm_ledger_reserve(struct llm_ledger *ledger, const struct llm_call *call,
                       const struct llm_budgets *budgets, uint64_t now_ms, uint64_t *ret_ticket,
                       struct llm_refusal *ret_refusal)
{
    uint64_t ticket;
    int r;
    lock_scope(&ledger->lock);

    r = budget_check(ledger, call, false, &budgets->sandbox, now_ms, ret_refusal);
    if (r == 0)
        r = budget_check(ledger, call, true, &budgets->owner, now_ms, ret_refusal);
    if (r == -EDQUOT)
        llm_series_totals(&ledger->series, call->owner, call->model)->refused++;
    if (r < 0)
        return r;
    ticket = ledger->last_ticket + 1;
    r = ledger_file_reserve(ledger, call, ticket, now_ms);
    if (r < 0)
        return r;
    ledger_reservation_add(ledger, call, ticket, now_ms);
    *ret_ticket = ticket;
    return 0;
}

void llm_ledger_settle(struct llm_ledger *ledger, uint64_t ticket,
                       const struct token_counts *tokens)
{
    cleanup_free struct reservation *old = NULL;
    uint64_t money;
    lock_scope(&ledger->lock);

    old = ledger_reservation_take(ledger, ticket);
    if (!old)
        return;
    money = llm_price_of(&old->price, tokens);
    ledger_file_settle(ledger, ticket, tokens, money);
    ledger_reservation_settle(ledger, old, tokens, money);
}

void llm_ledger_keep_all(struct llm_ledger *ledger)
{
    lock_scope(&ledger->lock);

    ledger_reservations_end(ledger);
}

size_t llm_ledger_series(struct llm_ledger *ledger, struct llm_series **ret)
{
    lock_scope(&ledger->lock);

    *ret = xcalloc(ledger->series.count + 1, sizeof(**ret));
    for (size_t i = 0; i < ledger->series.count; i++)
        (*ret)[i] = ledger->series.items[i];
    return ledger->series.count;
}

size_t llm_ledger_rows(struct llm_ledger *ledger, uint64_t since_day, struct llm_usage_row **ret)
{
    size_t count = 0;
    lock_scope(&ledger->lock);

    *ret = xcalloc(ledger->row_count + 1, sizeof(**ret));
    for (size_t i = 0; i < ledger->row_count; i++)
        if (ledger->rows[i].day >= since_day)
            (*ret)[count++] = ledger->rows[i];
    return count;
}
