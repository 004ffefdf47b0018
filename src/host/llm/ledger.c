// SPDX-License-Identifier: Apache-2.0
/* The file has a line for each event, with fields separated by blanks:
 * - u DAY SANDBOX OWNER MODEL REQUESTS UNSETTLED INPUT READ WRITE OUTPUT MONEY
 * - r TICKET MS SANDBOX OWNER MODEL INPUT OUTPUT MONEY
 * - s TICKET INPUT READ WRITE OUTPUT MONEY
 *
 * u is a row, r a reservation, and s settles it. Names have no blanks. The file is written anew,
 * with rows alone, when it is opened. A last line without its end was cut by a kill and is dropped:
 * what it says was not acted upon. */
#include "host/llm/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/text/parse.h"
#include "base/xalloc.h"

#define LEDGER_FILE "llm.ledger"
#define LEDGER_NEW "llm.ledger.new"

enum {
    LINE_SIZE = 768,
    MINUTE_MS = 60 * 1000,
    DAYS_KEPT = 92,
    MINUTES_PER_DAY = 24 * 60,
    SECONDS_PER_DAY = 24 * 60 * 60,
    ROWS_MAX = 200 * 1000,
};

/* What was used in one window of time, with what is reserved. */
struct window {
    uint64_t number; /* of the minute or day */
    uint64_t requests, tokens, money;
};

/* A sandbox or an owner. */
struct account {
    struct account *next;
    bool is_owner;
    struct window minute, day;
    char name[];
};

struct reservation {
    struct reservation *next;
    uint64_t ticket;
    uint64_t minute, day;
    uint64_t tokens, money, input, output;
    size_t row;
    struct account *accounts[2];
};

struct llm_ledger {
    struct lock lock;
    int fd;
    uint64_t last_ticket;
    struct account *accounts;
    struct reservation *open;
    struct llm_usage_row *rows;
    size_t row_count, row_cap;
    struct llm_series_list series;
    bool is_failing; /* the file could not be written; said once */
};

/* --- accounts --- */

static struct account *account_of(struct llm_ledger *ledger, const char *name, bool is_owner)
{
    struct account *account = ledger->accounts;

    while (account && (account->is_owner != is_owner || strcmp(account->name, name) != 0))
        account = account->next;
    if (account)
        return account;
    account = xcalloc(1, sizeof(*account) + strlen(name) + 1);
    memcpy(account->name, name, strlen(name) + 1);
    account->is_owner = is_owner;
    account->next = ledger->accounts;
    ledger->accounts = account;
    return account;
}

static void window_enter(struct window *window, uint64_t number)
{
    if (number > window->number)
        *window = (struct window){ .number = number };
}

static void window_add(struct window *window, uint64_t number, uint64_t tokens, uint64_t money)
{
    window_enter(window, number);
    if (window->number != number)
        return;
    window->requests++;
    window->tokens += tokens;
    window->money += money;
}

/* Replaces what was reserved by what was used. */
static void window_correct(struct window *window, uint64_t number, const struct reservation *old,
                           uint64_t tokens, uint64_t money)
{
    if (window->number != number)
        return;
    window->tokens = window->tokens - old->tokens + tokens;
    window->money = window->money - old->money + money;
}

/* --- rows --- */

static uint64_t tokens_sum(const struct token_counts *tokens)
{
    return tokens->input + tokens->cache_read + tokens->cache_write + tokens->output;
}

static size_t row_of(struct llm_ledger *ledger, uint64_t day, const struct llm_call *call)
{
    struct llm_usage_row *row;

    for (size_t i = ledger->row_count; i > 0; i--) {
        row = &ledger->rows[i - 1];
        if (row->day == day && strcmp(row->sandbox, call->sandbox) == 0 &&
            strcmp(row->model, call->model) == 0 && strcmp(row->owner, call->owner) == 0)
            return i - 1;
        if (row->day < day)
            break;
    }
    if (ledger->row_count == ledger->row_cap) {
        ledger->row_cap = ledger->row_cap * 2 + 64;
        ledger->rows = xreallocarray(ledger->rows, ledger->row_cap, sizeof(*ledger->rows));
    }
    row = &ledger->rows[ledger->row_count];
    *row = (struct llm_usage_row){ .day = day };
    (void)snprintf(row->sandbox, sizeof(row->sandbox), "%s", call->sandbox);
    (void)snprintf(row->owner, sizeof(row->owner), "%s", call->owner);
    (void)snprintf(row->model, sizeof(row->model), "%s", call->model);
    return ledger->row_count++;
}

/* --- events, as they happen and as they are read --- */

static struct reservation *reservation_add(struct llm_ledger *ledger, const struct llm_call *call,
                                           uint64_t ticket, uint64_t now_ms)
{
    struct reservation *new = xcalloc(1, sizeof(*new));
    struct llm_usage *usage;

    new->ticket = ticket;
    new->minute = now_ms / MINUTE_MS;
    new->day = new->minute / MINUTES_PER_DAY;
    new->tokens = call->input + call->output;
    new->input = call->input;
    new->output = call->output;
    new->money = call->money;
    new->row = row_of(ledger, new->day, call);
    new->accounts[0] = account_of(ledger, call->sandbox, false);
    new->accounts[1] = account_of(ledger, call->owner, true);
    for (size_t i = 0; i < ARRAY_SIZE(new->accounts); i++) {
        window_add(&new->accounts[i]->minute, new->minute, new->tokens, new->money);
        window_add(&new->accounts[i]->day, new->day, new->tokens, new->money);
    }
    usage = &ledger->rows[new->row].usage;
    usage->requests++;
    usage->unsettled++;
    usage->tokens.input += call->input;
    usage->tokens.output += call->output;
    usage->money += call->money;
    new->next = ledger->open;
    ledger->open = new;
    if (ticket > ledger->last_ticket)
        ledger->last_ticket = ticket;
    return new;
}

static struct reservation *reservation_take(struct llm_ledger *ledger, uint64_t ticket)
{
    struct reservation **slot = &ledger->open, *found;

    while (*slot && (*slot)->ticket != ticket)
        slot = &(*slot)->next;
    found = *slot;
    if (found)
        *slot = found->next;
    return found;
}

static void series_add(struct llm_ledger *ledger, size_t row_index,
                       const struct token_counts *tokens, uint64_t money)
{
    const struct llm_usage_row *row = &ledger->rows[row_index];
    const struct llm_totals more = { .requests = 1, .tokens = *tokens, .money = money };

    llm_totals_add(llm_series_totals(&ledger->series, row->owner, row->model), &more);
}

static void reservation_settle(struct llm_ledger *ledger, const struct reservation *old,
                               const struct token_counts *tokens, uint64_t money)
{
    struct llm_usage *usage = &ledger->rows[old->row].usage;
    uint64_t sum = tokens_sum(tokens);

    series_add(ledger, old->row, tokens, money);
    for (size_t i = 0; i < ARRAY_SIZE(old->accounts); i++) {
        window_correct(&old->accounts[i]->minute, old->minute, old, sum, money);
        window_correct(&old->accounts[i]->day, old->day, old, sum, money);
    }
    usage->unsettled--;
    usage->tokens.input += tokens->input - old->input;
    usage->tokens.output += tokens->output - old->output;
    usage->tokens.cache_read += tokens->cache_read;
    usage->tokens.cache_write += tokens->cache_write;
    usage->money += money - old->money;
}

/* --- the file --- */

static int line_write(struct llm_ledger *ledger, const char *line, size_t len)
{
    int r = write_all(ledger->fd, line, len);

    if (r < 0 && !ledger->is_failing)
        log_error("the use of models cannot be recorded: %s", strerror(-r));
    ledger->is_failing = r < 0;
    return r;
}

/* Reads the next field of a line, which is separated by blanks. */
static bool word_next(const char **line, char *ret, size_t size)
{
    const char *start = *line + strspn(*line, " ");
    size_t len = strcspn(start, " \n");

    *line = start + len;
    if (len == 0 || len >= size)
        return false;
    memcpy(ret, start, len);
    ret[len] = '\0';
    return true;
}

static bool numbers_next(const char **line, uint64_t *const *list, size_t count)
{
    char text[32];

    for (size_t i = 0; i < count; i++)
        if (!word_next(line, text, sizeof(text)) || parse_u64(text, list[i]) < 0)
            return false;
    return true;
}

static bool names_next(const char **line, char *sandbox, char *owner, char *model)
{
    return word_next(line, sandbox, LLM_SANDBOX_SIZE) &&
           word_next(line, owner, OWNER_NAME_MAX + 1) && word_next(line, model, MODEL_NAME_MAX + 1);
}

/* The readers get a line behind the letter that says what it is. */
static void row_read(struct llm_ledger *ledger, const char *line, uint64_t today)
{
    struct llm_usage_row row = { .day = 0 };
    struct llm_usage *usage = &row.usage;
    const struct llm_call call = { .sandbox = row.sandbox, .owner = row.owner, .model = row.model };
    uint64_t *const day_number[] = { &row.day };
    uint64_t *const counts[] = { &usage->requests,
                                 &usage->unsettled,
                                 &usage->tokens.input,
                                 &usage->tokens.cache_read,
                                 &usage->tokens.cache_write,
                                 &usage->tokens.output,
                                 &usage->money };
    struct account *accounts[2];
    struct window *day;
    size_t index;

    if (!numbers_next(&line, day_number, 1) ||
        !names_next(&line, row.sandbox, row.owner, row.model) ||
        !numbers_next(&line, counts, ARRAY_SIZE(counts)) || row.day + DAYS_KEPT < today)
        return;
    index = row_of(ledger, row.day, &call); /* first: it may move the rows */
    ledger->rows[index].usage = *usage;
    accounts[0] = account_of(ledger, row.sandbox, false);
    accounts[1] = account_of(ledger, row.owner, true);
    for (size_t i = 0; i < ARRAY_SIZE(accounts); i++) {
        day = &accounts[i]->day;
        window_enter(day, row.day);
        if (day->number != row.day)
            continue;
        day->requests += usage->requests;
        day->tokens += tokens_sum(&usage->tokens);
        day->money += usage->money;
    }
}

static void reservation_read(struct llm_ledger *ledger, const char *line)
{
    char sandbox[LLM_SANDBOX_SIZE], owner[OWNER_NAME_MAX + 1], model[MODEL_NAME_MAX + 1];
    struct llm_call call = { .sandbox = sandbox, .owner = owner, .model = model };
    uint64_t ticket, ms;
    uint64_t *const first[] = { &ticket, &ms };
    uint64_t *const last[] = { &call.input, &call.output, &call.money };

    if (numbers_next(&line, first, ARRAY_SIZE(first)) && names_next(&line, sandbox, owner, model) &&
        numbers_next(&line, last, ARRAY_SIZE(last)))
        (void)reservation_add(ledger, &call, ticket, ms);
}

static void settled_read(struct llm_ledger *ledger, const char *line)
{
    struct token_counts tokens = { 0 };
    uint64_t ticket, money;
    uint64_t *const fields[] = {
        &ticket, &tokens.input, &tokens.cache_read, &tokens.cache_write, &tokens.output, &money
    };
    cleanup_free struct reservation *old = NULL;

    if (!numbers_next(&line, fields, ARRAY_SIZE(fields)))
        return;
    old = reservation_take(ledger, ticket);
    if (old)
        reservation_settle(ledger, old, &tokens, money);
}

static void ledger_read(struct llm_ledger *ledger, FILE *file, uint64_t today)
{
    char line[LINE_SIZE];

    while (fgets(line, sizeof(line), file)) {
        if (!strchr(line, '\n'))
            break;
        if (line[0] == 'u')
            row_read(ledger, line + 1, today);
        else if (line[0] == 'r')
            reservation_read(ledger, line + 1);
        else if (line[0] == 's')
            settled_read(ledger, line + 1);
    }
}

/* Whatever was under way when the file was written is not any more: it counts as reserved. */
static void reservations_end(struct llm_ledger *ledger)
{
    while (ledger->open) {
        cleanup_free struct reservation *each = reservation_take(ledger, ledger->open->ticket);

        series_add(ledger, each->row,
                   &(struct token_counts){ .input = each->input, .output = each->output },
                   each->money);
    }
}

static int ledger_write(struct llm_ledger *ledger, int dir_fd, struct err *err)
{
    cleanup_close int fd =
        openat(dir_fd, LEDGER_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_APPEND, 0600);
    char line[LINE_SIZE];
    int r = fd < 0 ? -errno : 0;

    for (size_t i = 0; r == 0 && i < ledger->row_count; i++) {
        const struct llm_usage_row *row = &ledger->rows[i];
        const struct llm_usage *usage = &row->usage;
        int len = snprintf(line, sizeof(line),
                           "u %" PRIu64 " %s %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                           " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                           row->day, row->sandbox, row->owner, row->model, usage->requests,
                           usage->unsettled, usage->tokens.input, usage->tokens.cache_read,
                           usage->tokens.cache_write, usage->tokens.output, usage->money);

        r = write_all(fd, line, (size_t)len);
    }
    if (r == 0 && (fsync(fd) < 0 || renameat(dir_fd, LEDGER_NEW, dir_fd, LEDGER_FILE) < 0))
        r = -errno;
    if (r < 0)
        return err_sys(err, r, "write '%s'", LEDGER_NEW);
    ledger->fd = TAKE_FD(fd);
    return 0;
}

int llm_ledger_open(int dir_fd, struct llm_ledger **ret, struct err *err)
{
    struct llm_ledger *ledger = xcalloc(1, sizeof(*ledger));
    int fd = openat(dir_fd, LEDGER_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    int r = fd < 0 && errno != ENOENT ? err_sys(err, -errno, "open '%s'", LEDGER_FILE) : 0;

    ledger->fd = -EBADF;
    lock_init(&ledger->lock, LOCK_LLM);
    if (file) {
        ledger_read(ledger, file, clock_wall_ms() / MINUTE_MS / MINUTES_PER_DAY);
        (void)fclose(file);
    }
    reservations_end(ledger);
    llm_series_done(&ledger->series); /* what was read has ended before */
    if (r == 0)
        r = ledger_write(ledger, dir_fd, err);
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
    reservations_end(ledger);
    while (ledger->accounts) {
        struct account *account = ledger->accounts;

        ledger->accounts = account->next;
        free(account);
    }
    free(ledger->rows);
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
static const char *budget_exceeded(const struct llm_budget *budget, const struct account *account,
                                   const struct llm_call *call, bool *ret_is_minute)
{
    const struct window *minute = &account->minute, *day = &account->day;
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
    struct account *account = account_of(ledger, name, is_owner);
    uint64_t second = now_ms / 1000;
    bool is_minute;

    window_enter(&account->minute, now_ms / MINUTE_MS);
    window_enter(&account->day, now_ms / MINUTE_MS / MINUTES_PER_DAY);
    what = budget_exceeded(budget, account, call, &is_minute);
    if (!what)
        return 0;
    ret->retry_seconds = is_minute ? 60 - second % 60 : SECONDS_PER_DAY - second % SECONDS_PER_DAY;
    (void)snprintf(ret->text, sizeof(ret->text),
                   "the budget of %s '%s' is used up: %s (with what this request may take)",
                   is_owner ? "owner" : "sandbox", name, what);
    return -EDQUOT;
}

int llm_ledger_reserve(struct llm_ledger *ledger, const struct llm_call *call,
                       const struct llm_budgets *budgets, uint64_t now_ms, uint64_t *ret_ticket,
                       struct llm_refusal *ret_refusal)
{
    char line[LINE_SIZE];
    int r, len;
    lock_scope(&ledger->lock);

    r = budget_check(ledger, call, false, &budgets->sandbox, now_ms, ret_refusal);
    if (r == 0)
        r = budget_check(ledger, call, true, &budgets->owner, now_ms, ret_refusal);
    if (r == 0 && ledger->row_count >= ROWS_MAX)
        r = -ENOSPC;
    if (r == -EDQUOT)
        llm_series_totals(&ledger->series, call->owner, call->model)->refused++;
    if (r < 0)
        return r;
    len = snprintf(line, sizeof(line),
                   "r %" PRIu64 " %" PRIu64 " %s %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                   ledger->last_ticket + 1, now_ms, call->sandbox, call->owner, call->model,
                   call->input, call->output, call->money);
    r = line_write(ledger, line, (size_t)len);
    if (r < 0)
        return r;
    *ret_ticket = reservation_add(ledger, call, ledger->last_ticket + 1, now_ms)->ticket;
    return 0;
}

void llm_ledger_settle(struct llm_ledger *ledger, uint64_t ticket,
                       const struct token_counts *tokens, uint64_t money)
{
    cleanup_free struct reservation *old = NULL;
    char line[LINE_SIZE];
    int len;
    lock_scope(&ledger->lock);

    old = reservation_take(ledger, ticket);
    if (!old)
        return;
    len = snprintf(line, sizeof(line),
                   "s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                   ticket, tokens->input, tokens->cache_read, tokens->cache_write, tokens->output,
                   money);
    (void)line_write(ledger, line, (size_t)len);
    reservation_settle(ledger, old, tokens, money);
}

void llm_ledger_keep_all(struct llm_ledger *ledger)
{
    lock_scope(&ledger->lock);

    reservations_end(ledger);
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
