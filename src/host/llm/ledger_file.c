// SPDX-License-Identifier: Apache-2.0
/* The file has a line for each event, with fields separated by blanks:
 * - u DAY SANDBOX OWNER MODEL REQUESTS UNSETTLED INPUT READ WRITE OUTPUT MONEY
 * - r TICKET MS SANDBOX OWNER MODEL INPUT OUTPUT MONEY
 * - s TICKET INPUT READ WRITE OUTPUT MONEY
 *
 * u is a row, r a reservation, and s settles it. Names have no blanks. The file is written anew
 * when it is opened, and when it has grown: rows first, without what is reserved, then the
 * reservations that are open. A last line without its end was cut by a kill and is dropped: what it
 * says was not acted upon. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "host/llm/ledger_internal.h"

#define LEDGER_FILE "llm.ledger"
#define LEDGER_NEW "llm.ledger.new"

enum {
    LINE_SIZE = 768,
    WRITE_BYTES = 64 * 1024, /* at once */
    ADDED_MAX = 32 * 1024 * 1024,
};

/* --- reading --- */

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
    struct llm_window *day;
    size_t index;

    if (!numbers_next(&line, day_number, 1) ||
        !names_next(&line, row.sandbox, row.owner, row.model) ||
        !numbers_next(&line, counts, ARRAY_SIZE(counts)) || row.day + LEDGER_DAYS_KEPT < today)
        return;
    index = ledger_row_of(ledger, row.day, &call); /* first: it may move the rows */
    ledger->rows[index].usage = *usage;
    for (int is_owner = 0; is_owner < 2; is_owner++) {
        day =
            &llm_account_of(&ledger->accounts, is_owner ? row.owner : row.sandbox, is_owner, today)
                 ->day;
        llm_window_enter(day, row.day);
        if (day->number != row.day)
            continue;
        day->requests += usage->requests;
        day->tokens += ledger_tokens_sum(&usage->tokens);
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
        ledger_reservation_add(ledger, &call, ticket, ms);
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
    old = ledger_reservation_take(ledger, ticket);
    if (old)
        ledger_reservation_settle(ledger, old, &tokens, money);
}

static void lines_read(struct llm_ledger *ledger, FILE *file, uint64_t today)
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

int ledger_file_read(struct llm_ledger *ledger, struct err *err)
{
    int fd = openat(ledger->dir_fd, LEDGER_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

    if (fd < 0 && errno != ENOENT)
        return err_sys(err, -errno, "open '%s'", LEDGER_FILE);
    if (!file)
        return 0;
    lines_read(ledger, file, ledger_day_of(clock_wall_ms()));
    (void)fclose(file);
    return 0;
}

/* --- writing --- */

static int text_flush(int fd, struct buf *text, size_t least)
{
    int r = text->len > least ? write_all(fd, text->data, text->len) : 0;

    if (text->len > least)
        buf_clear(text);
    return r;
}

static int row_put(const struct llm_usage_row *row, struct buf *out)
{
    const struct llm_usage *usage = &row->usage;

    return buf_printf(out,
                      "u %" PRIu64 " %s %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                      " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                      row->day, row->sandbox, row->owner, row->model, usage->requests,
                      usage->unsettled, usage->tokens.input, usage->tokens.cache_read,
                      usage->tokens.cache_write, usage->tokens.output, usage->money);
}

static int reservation_put(const struct llm_call *call, uint64_t ticket, uint64_t ms,
                           struct buf *out)
{
    return buf_printf(
        out, "r %" PRIu64 " %" PRIu64 " %s %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", ticket, ms,
        call->sandbox, call->owner, call->model, call->input, call->output, call->money);
}

/* The lines of reservations add what the rows had of them. */
static struct llm_usage_row *settled_rows(const struct llm_ledger *ledger)
{
    struct llm_usage_row *rows = xcalloc(ledger->row_count + 1, sizeof(*rows));

    for (size_t i = 0; i < ledger->row_count; i++)
        rows[i] = ledger->rows[i];
    for (const struct reservation *each = ledger->open; each; each = each->next) {
        struct llm_usage *usage = &rows[each->row].usage;

        usage->requests--;
        usage->unsettled--;
        usage->tokens.input -= each->input;
        usage->tokens.output -= each->output;
        usage->money -= each->day.money;
    }
    return rows;
}

static int lines_write(const struct llm_ledger *ledger, int fd)
{
    cleanup_free struct llm_usage_row *rows = settled_rows(ledger);
    cleanup_with(buf_done) struct buf text = BUF_INIT(WRITE_BYTES + LINE_SIZE);
    int r = 0;

    for (size_t i = 0; r == 0 && i < ledger->row_count; i++) {
        r = row_put(&rows[i], &text);
        if (r == 0)
            r = text_flush(fd, &text, WRITE_BYTES);
    }
    for (const struct reservation *each = ledger->open; r == 0 && each; each = each->next) {
        const struct llm_usage_row *row = &rows[each->row];
        const struct llm_call call = { .sandbox = row->sandbox,
                                       .owner = row->owner,
                                       .model = row->model,
                                       .input = each->input,
                                       .output = each->output,
                                       .money = each->day.money };

        r = reservation_put(&call, each->ticket, each->ms, &text);
        if (r == 0)
            r = text_flush(fd, &text, WRITE_BYTES);
    }
    return r == 0 ? text_flush(fd, &text, 0) : r;
}

int ledger_file_write(struct llm_ledger *ledger)
{
    cleanup_close int fd = openat(ledger->dir_fd, LEDGER_NEW,
                                  O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_APPEND, 0600);
    int r = fd < 0 ? -errno : lines_write(ledger, fd);

    if (r == 0 &&
        (fsync(fd) < 0 || renameat(ledger->dir_fd, LEDGER_NEW, ledger->dir_fd, LEDGER_FILE) < 0))
        r = -errno;
    if (r < 0)
        return r;
    (void)fd_close(ledger->fd);
    ledger->fd = TAKE_FD(fd);
    ledger->added = 0;
    return 0;
}

/* Forgets rows of days that are over for long, and the oldest ones if there are too many; never
 * those of today, nor what a reservation is of. */
static void rows_drop(struct llm_ledger *ledger, uint64_t today)
{
    size_t excess = ledger->row_count >= LEDGER_ROWS_MAX ? LEDGER_ROWS_MAX / 4 : 0, dropped = 0;

    while (dropped < ledger->row_count && (ledger->rows[dropped].day + LEDGER_DAYS_KEPT < today ||
                                           (dropped < excess && ledger->rows[dropped].day < today)))
        dropped++;
    for (const struct reservation *each = ledger->open; each; each = each->next)
        if (each->row < dropped)
            dropped = each->row;
    ledger->row_count -= dropped;
    memmove(ledger->rows, ledger->rows + dropped, ledger->row_count * sizeof(*ledger->rows));
    memmove(ledger->previous, ledger->previous + dropped,
            ledger->row_count * sizeof(*ledger->previous));
    for (size_t i = 0; i < ledger->row_count; i++)
        ledger->previous[i] -= ledger->previous[i] < dropped ? ledger->previous[i] : dropped;
    llm_accounts_shift(&ledger->accounts, dropped);
    for (struct reservation *each = ledger->open; each; each = each->next)
        each->row -= dropped;
}

static int line_append(struct llm_ledger *ledger, const struct buf *line)
{
    int r = write_all(ledger->fd, line->data, line->len);

    ledger->added += line->len;
    if (r < 0 && !ledger->is_failing)
        log_error("the use of models cannot be recorded: %s", strerror(-r));
    ledger->is_failing = r < 0;
    return r;
}

int ledger_file_reserve(struct llm_ledger *ledger, const struct llm_call *call, uint64_t ticket,
                        uint64_t now_ms)
{
    cleanup_with(buf_done) struct buf line = BUF_INIT(LINE_SIZE);
    int r;

    if (ledger->added > ADDED_MAX || ledger->row_count >= LEDGER_ROWS_MAX) {
        rows_drop(ledger, ledger_day_of(now_ms));
        r = ledger_file_write(ledger);
        if (r < 0) { /* the old one is as good; not at every line */
            log_warn("the use of models cannot be written anew: %s", strerror(-r));
            ledger->added = 0;
        }
    }
    if (ledger->row_count >= LEDGER_ROWS_MAX)
        return -ENOSPC;
    r = reservation_put(call, ticket, now_ms, &line);
    return r == 0 ? line_append(ledger, &line) : r;
}

void ledger_file_settle(struct llm_ledger *ledger, uint64_t ticket,
                        const struct token_counts *tokens, uint64_t money)
{
    cleanup_with(buf_done) struct buf line = BUF_INIT(LINE_SIZE);

    if (buf_printf(&line,
                   "s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                   ticket, tokens->input, tokens->cache_read, tokens->cache_write, tokens->output,
                   money) == 0)
        (void)line_append(ledger, &line);
}
