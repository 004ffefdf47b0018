// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "check.h"
#include "host/llm/ledger_internal.h"

static const struct llm_budget no_limit;
static const struct llm_call call = {
    .sandbox = "sb-1",
    .owner = "ann",
    .model = "fast",
    .input = 40,
    .output = 60,
    .money = 1000,
    .price = { .input = 10, .cache_read = 5, .cache_write = 7, .output = 10, .is_known = true },
};

static int directory_make(void)
{
    char path[] = "/tmp/holt-ledger.XXXXXX";
    int fd;

    CHECK(mkdtemp(path) != NULL);
    fd = open(path, O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

static void directory_remove(int fd)
{
    char link[64], path[128] = "";

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    CHECK(readlink(link, path, sizeof(path) - 1) > 0);
    (void)unlinkat(fd, "llm.ledger", 0);
    CHECK(rmdir(path) == 0);
    (void)close(fd);
}

static struct llm_ledger *ledger_open(int fd)
{
    struct llm_ledger *ledger = NULL;
    struct err err = { 0 };

    CHECK(llm_ledger_open(fd, &ledger, &err) == 0, "(%s)", err.msg);
    return ledger;
}

static int reserve(struct llm_ledger *ledger, const struct llm_budget *sandbox,
                   const struct llm_budget *owner, uint64_t now_ms, uint64_t *ret)
{
    const struct llm_budgets budgets = { .sandbox = *sandbox, .owner = *owner };
    struct llm_refusal refusal = { .text = "" };
    int r = llm_ledger_reserve(ledger, &call, &budgets, now_ms, ret, &refusal);

    CHECK(r == 0 || (refusal.text[0] && refusal.retry_seconds > 0));
    return r;
}

static void check_row(struct llm_ledger *ledger, const struct llm_usage *wanted)
{
    cleanup_free struct llm_usage_row *rows = NULL;
    size_t count = llm_ledger_rows(ledger, 0, &rows);

    CHECK(count == 1);
    CHECK(memcmp(&rows[0].usage, wanted, sizeof(*wanted)) == 0, "(%llu requests, %llu input)",
          (unsigned long long)rows[0].usage.requests,
          (unsigned long long)rows[0].usage.tokens.input);
}

static void a_call_counts_as_reserved_until_it_is_settled(void)
{
    int fd = directory_make();
    struct llm_ledger *ledger = ledger_open(fd);
    const struct token_counts used = { .input = 10, .cache_read = 20, .output = 5 };
    uint64_t ticket = 0;

    CHECK(reserve(ledger, &no_limit, &no_limit, clock_wall_ms(), &ticket) == 0);
    check_row(ledger, &(struct llm_usage){ .requests = 1,
                                           .unsettled = 1,
                                           .tokens = { .input = 40, .output = 60 },
                                           .money = 1000 });
    llm_ledger_settle(ledger, ticket, &used);
    llm_ledger_settle(ledger, ticket, &used); /* once */
    check_row(ledger, &(struct llm_usage){ .requests = 1, .tokens = used, .money = 250 });
    llm_ledger_close(ledger);
    directory_remove(fd);
}

static void budgets_hold_with_what_is_reserved(void)
{
    int fd = directory_make();
    struct llm_ledger *ledger = ledger_open(fd);
    const struct llm_budget tokens = { .tokens_day = 250 }, money = { .money_day = 2999 };
    const struct llm_budget requests = { .requests_minute = 3 };
    const struct token_counts used = { .output = 1 };
    uint64_t now_ms = clock_wall_ms() / 60000 * 60000, ticket = 0, ignored;

    CHECK(reserve(ledger, &tokens, &no_limit, now_ms, &ticket) == 0);
    CHECK(reserve(ledger, &tokens, &money, now_ms, &ignored) == 0);
    CHECK(reserve(ledger, &tokens, &no_limit, now_ms, &ignored) == -EDQUOT);
    CHECK(reserve(ledger, &no_limit, &money, now_ms, &ignored) == -EDQUOT);
    llm_ledger_settle(ledger, ticket, &used);
    CHECK(reserve(ledger, &tokens, &money, now_ms, &ignored) == 0);
    CHECK(reserve(ledger, &requests, &no_limit, now_ms, &ignored) == -EDQUOT);
    CHECK(reserve(ledger, &requests, &no_limit, now_ms + 60000, &ignored) == 0);
    llm_ledger_close(ledger);
    directory_remove(fd);
}

static void what_was_under_way_at_a_kill_stays_reserved(void)
{
    int fd = directory_make();
    struct llm_ledger *ledger = ledger_open(fd), *killed;
    const struct llm_budget budget = { .requests_day = 2 };
    const struct token_counts used = { .input = 1, .cache_write = 2, .output = 3 };
    uint64_t first = 0, second = 0, third;
    int file;

    CHECK(reserve(ledger, &no_limit, &no_limit, clock_wall_ms(), &first) == 0);
    CHECK(reserve(ledger, &no_limit, &no_limit, clock_wall_ms(), &second) == 0);
    llm_ledger_settle(ledger, first, &used);
    file = openat(fd, "llm.ledger", O_WRONLY | O_APPEND | O_CLOEXEC);
    CHECK(file >= 0 && write(file, "s 2 1 1", 7) == 7); /* a line that a kill has cut */
    (void)close(file);
    killed = ledger;
    for (int i = 0; i < 2; i++) { /* the second time it reads rows */
        ledger = ledger_open(fd);
        check_row(ledger,
                  &(struct llm_usage){ .requests = 2,
                                       .unsettled = 1,
                                       .tokens = { .input = 41, .cache_write = 2, .output = 63 },
                                       .money = 1054 });
        CHECK(reserve(ledger, &budget, &no_limit, clock_wall_ms(), &third) == -EDQUOT);
        CHECK(reserve(ledger, &no_limit, &budget, clock_wall_ms(), &third) == -EDQUOT);
        llm_ledger_settle(ledger, second, &used); /* it is too late */
        llm_ledger_close(ledger);
    }
    llm_ledger_close(killed);
    directory_remove(fd);
}

/* The file is written anew while calls are under way; a kill comes before and after their end. */
static void a_file_written_anew_keeps_what_is_open(void)
{
    const struct token_counts used = { .input = 1, .cache_write = 2, .output = 3 };
    const struct llm_budget budget = { .requests_minute = 2 };
    int fd = directory_make();
    struct llm_ledger *ledger = ledger_open(fd), *killed = ledger;
    uint64_t first = 0, second = 0, third, now_ms = clock_wall_ms();

    CHECK(reserve(ledger, &no_limit, &no_limit, now_ms, &first) == 0);
    CHECK(reserve(ledger, &no_limit, &no_limit, now_ms, &second) == 0);
    CHECK(ledger_file_write(ledger) == 0);
    llm_ledger_settle(ledger, first, &used);
    ledger = ledger_open(fd);
    check_row(ledger,
              &(struct llm_usage){ .requests = 2,
                                   .unsettled = 1,
                                   .tokens = { .input = 41, .cache_write = 2, .output = 63 },
                                   .money = 1054 });
    CHECK(reserve(ledger, &budget, &no_limit, now_ms, &third) == -EDQUOT);
    llm_ledger_close(ledger);
    llm_ledger_close(killed);
    directory_remove(fd);
}

/* A price that changes meanwhile is for later calls. */
static void a_call_is_settled_at_its_own_price(void)
{
    const struct token_counts used = { .output = 6 };
    struct llm_call dear = call;
    struct llm_refusal refusal;
    int fd = directory_make();
    struct llm_ledger *ledger = ledger_open(fd);
    const struct llm_budgets budgets = { .sandbox = no_limit };
    uint64_t ticket = 0;

    dear.price.output = 100;
    CHECK(llm_ledger_reserve(ledger, &dear, &budgets, clock_wall_ms(), &ticket, &refusal) == 0);
    llm_ledger_settle(ledger, ticket, &used);
    check_row(ledger, &(struct llm_usage){ .requests = 1, .tokens = used, .money = 600 });
    llm_ledger_close(ledger);
    directory_remove(fd);
}

static void old_rows_give_way_to_new_ones(void)
{
    enum { TODAY = 20000, DAY_MS = 24 * 60 * 60 * 1000 };
    struct llm_refusal refusal;
    const struct llm_budgets budgets = { .sandbox = no_limit };
    struct llm_call each = call;
    char name[LLM_SANDBOX_SIZE];
    int fd = directory_make();
    struct llm_ledger *ledger = ledger_open(fd);
    uint64_t kept = 0, ticket;

    each.sandbox = name;
    for (size_t i = 0; i < LEDGER_ROWS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "sb-%zu", i);
        (void)ledger_row_of(ledger, i < 1000 ? TODAY - 100 : TODAY - 1, &each);
    }
    CHECK(llm_ledger_reserve(ledger, &each, &budgets, (uint64_t)TODAY * DAY_MS, &kept, &refusal) ==
          0);
    CHECK(ledger->row_count == LEDGER_ROWS_MAX - LEDGER_ROWS_MAX / 4 + 1, "(%zu)",
          ledger->row_count);
    while (ledger->row_count < LEDGER_ROWS_MAX) {
        (void)snprintf(name, sizeof(name), "new-%zu", ledger->row_count);
        (void)ledger_row_of(ledger, TODAY, &each);
    }
    CHECK(llm_ledger_reserve(ledger, &each, &budgets, (uint64_t)TODAY * DAY_MS, &ticket,
                             &refusal) == 0);
    llm_ledger_settle(ledger, kept, &(struct token_counts){ .output = 1 });
    CHECK(strcmp(ledger->rows[ledger_row_of(ledger, TODAY, &each)].sandbox, name) == 0);
    llm_ledger_close(ledger);
    directory_remove(fd);
}

static void accounts_of_earlier_days_are_forgotten(void)
{
    struct llm_accounts accounts = { .count = 0 };
    char name[32];

    for (unsigned i = 0; i < 10000; i++) {
        (void)snprintf(name, sizeof(name), "sb-%u", i);
        llm_window_add(&llm_account_of(&accounts, name, false, i / 1000)->day, i / 1000, 5, 1);
    }
    CHECK(accounts.count <= 3 * 1024, "(%zu)", accounts.count);
    CHECK(llm_account_of(&accounts, "sb-9500", false, 9)->day.tokens == 5);
    CHECK(llm_account_of(&accounts, "sb-9500", true, 9)->day.tokens == 0);
    llm_accounts_done(&accounts);
}

static void series_are_by_owner_and_model_since_the_start(void)
{
    const struct llm_budget one = { .requests_day = 1 };
    const struct token_counts used = { .input = 1, .cache_read = 2, .cache_write = 3, .output = 4 };
    cleanup_free struct llm_series *series = NULL;
    int fd = directory_make();
    struct llm_ledger *ledger = ledger_open(fd);
    uint64_t ticket = 0;
    size_t count;

    CHECK(reserve(ledger, &no_limit, &no_limit, clock_wall_ms(), &ticket) == 0);
    count = llm_ledger_series(ledger, &series);
    CHECK(count == 0); /* it has not ended */
    free(series);
    llm_ledger_settle(ledger, ticket, &used);
    CHECK(reserve(ledger, &one, &no_limit, clock_wall_ms(), &ticket) == -EDQUOT);
    count = llm_ledger_series(ledger, &series);
    CHECK(count == 1 && strcmp(series[0].owner, "ann") == 0 &&
          strcmp(series[0].model, "fast") == 0);
    CHECK(memcmp(&series[0].totals,
                 &(struct llm_totals){ .requests = 1, .refused = 1, .tokens = used, .money = 81 },
                 sizeof(series[0].totals)) == 0);
    llm_ledger_close(ledger);
    ledger = ledger_open(fd);
    free(series);
    CHECK(llm_ledger_series(ledger, &series) == 0);
    llm_ledger_close(ledger);
    directory_remove(fd);
}

static void too_many_series_share_the_last(void)
{
    struct llm_series_list list = { .items = NULL };
    char model[32];

    for (unsigned i = 0; i < LLM_SERIES_MAX + 50; i++) {
        (void)snprintf(model, sizeof(model), "model-%u", i);
        llm_series_totals(&list, "ann", model)->requests++;
    }
    CHECK(list.count == LLM_SERIES_MAX + 1);
    CHECK(llm_series_totals(&list, "ann", "model-7")->requests == 1);
    CHECK(strcmp(list.items[LLM_SERIES_MAX].owner, LLM_SERIES_OTHER) == 0);
    CHECK(list.items[LLM_SERIES_MAX].totals.requests == 50);
    llm_series_done(&list);
}

int main(void)
{
    RUN(a_call_counts_as_reserved_until_it_is_settled);
    RUN(budgets_hold_with_what_is_reserved);
    RUN(what_was_under_way_at_a_kill_stays_reserved);
    RUN(a_file_written_anew_keeps_what_is_open);
    RUN(a_call_is_settled_at_its_own_price);
    RUN(old_rows_give_way_to_new_ones);
    RUN(accounts_of_earlier_days_are_forgotten);
    RUN(series_are_by_owner_and_model_since_the_start);
    RUN(too_many_series_share_the_last);
    return 0;
}
