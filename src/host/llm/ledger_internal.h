/* The state of a ledger, for ledger.c and ledger_file.c. */
#pragma once

#include "base/lock.h"
#include "host/llm/account.h"
#include "host/llm/ledger.h"

enum {
    LEDGER_MINUTE_MS = 60 * 1000,
    LEDGER_DAY_MINUTES = 24 * 60,
    LEDGER_DAYS_KEPT = 92,
    LEDGER_ROWS_MAX = 200 * 1000,
};

struct reservation {
    struct reservation *next;
    uint64_t ticket, ms;
    struct llm_window minute, day; /* the windows that it counts in, with what it counts there */
    uint64_t input, output;        /* what it may take at most */
    struct llm_price price;
    size_t row;
    struct llm_account *accounts[2];
};

struct llm_ledger {
    struct lock lock;
    int dir_fd, fd;
    uint64_t last_ticket;
    struct llm_accounts accounts;
    struct reservation *open;
    struct llm_usage_row *rows;
    size_t *previous; /* the row of the same sandbox before each, as an index + 1 */
    size_t row_count, row_cap;
    struct llm_series_list series;
    uint64_t added;  /* bytes, since the file was written anew */
    bool is_failing; /* the file could not be written; said once */
};

uint64_t ledger_day_of(uint64_t ms);

/* Finds the row of a day, a sandbox and a model, or makes it. */
size_t ledger_row_of(struct llm_ledger *ledger, uint64_t day, const struct llm_call *call);
uint64_t ledger_tokens_sum(const struct token_counts *tokens);

void ledger_reservation_add(struct llm_ledger *ledger, const struct llm_call *call, uint64_t ticket,
                            uint64_t now_ms);

/* Takes a reservation out of the list of those that are open; NULL: it is not there. */
struct reservation *ledger_reservation_take(struct llm_ledger *ledger, uint64_t ticket);
void ledger_reservation_settle(struct llm_ledger *ledger, struct reservation *old,
                               const struct token_counts *tokens, uint64_t money);

/* Ends all reservations: they count as reserved. */
void ledger_reservations_end(struct llm_ledger *ledger);

/* --- ledger_file.c --- */

/* Reads the file, if there is one, and leaves its reservations open. */
int ledger_file_read(struct llm_ledger *ledger, struct err *err);

/* Writes the file anew. Returns 0 or -errno; nothing has changed then. */
int ledger_file_write(struct llm_ledger *ledger);

/* Append what happens. A file that has grown is written anew first, without old rows. Return 0 or
 * -errno. */
int ledger_file_reserve(struct llm_ledger *ledger, const struct llm_call *call, uint64_t ticket,
                        uint64_t now_ms);
void ledger_file_settle(struct llm_ledger *ledger, uint64_t ticket,
                        const struct token_counts *tokens, uint64_t money);
