/* All records of one sandbox: of what runs, and of what has ended not long ago. Reference counted;
 * every call may come from any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/process/process.h"

struct err;
struct host;
struct ledger;
struct record;

/* An empty one; refs 1. */
struct ledger *ledger_new(struct host *host, const char *sandbox, const char *name);

/* Whose it is: id, and name (""), which never change. */
const char *ledger_sandbox(const struct ledger *ledger);
const char *ledger_sandbox_name(const struct ledger *ledger);

/* Reads what an earlier life has left. What cannot be read is as if it had not been. */
void ledger_load(struct ledger *ledger);

struct ledger *ledger_ref(struct ledger *ledger);

/* Accepts NULL. */
void ledger_unref(struct ledger *ledger);

/* A new record, with the next number and a reference for the caller. ERR_EXISTS (ProcessExists)
 * when the spec's key was used already. One that is detached is on disk when this returns. */
int ledger_add(struct ledger *ledger, const struct process_spec *spec, struct record **ret,
               struct err *err);

/* It was never started. */
void ledger_withdraw(struct ledger *ledger, struct record *record);

/* Each with a reference, or NULL. */
struct record *ledger_find(struct ledger *ledger, const char *id);
struct record *ledger_find_key(struct ledger *ledger, const char *key);

/* Oldest first, each with a reference; the caller frees the list. */
struct record **ledger_list(struct ledger *ledger, size_t *ret_count);

/* The record of a process that the guest still has; a new one where there is none. With a
 * reference. */
struct record *ledger_adopt(struct ledger *ledger, uint32_t number);

/* Whatever is not over and was not adopted has ended like this. */
void ledger_settle(struct ledger *ledger, const struct process_end *end);

/* No number up to this one will be used again. */
void ledger_skip(struct ledger *ledger, uint32_t number);

/* Brings output to disk: what memory is not to hold, of a process that is over what is long, or
 * everything. The caller is the only one to do so. */
enum spool_extent { SPOOL_EXCESS, SPOOL_LONG, SPOOL_EVERYTHING };
void ledger_spool(struct ledger *ledger, struct record *record, enum spool_extent extent);

/* Writes what is known of records (all of which may be of different sandboxes) to disk. */
struct ledger_entry {
    struct ledger *ledger;
    struct record *record;
};
void ledger_write(struct host *host, const struct ledger_entry *entries, size_t count);

/* Forgets what has ended too long ago, and moves *next_ms forward to when there is more to. */
void ledger_expire(struct ledger *ledger, uint64_t now_ms, uint64_t *next_ms);

/* The record of a live process is opened again on what the guest has not forgotten. */
void ledger_resume(struct ledger *ledger, struct record *record,
                   const uint64_t acked[static PROCESS_STREAMS]);

/* Deletes all that is on disk; nothing will be written there again. */
void ledger_purge(struct ledger *ledger);
