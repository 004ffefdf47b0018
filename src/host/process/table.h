/* All records of one sandbox: of what runs, and of what has ended not long ago. Reference counted;
 * every call may come from any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/process/process.h"

struct err;
struct host;
struct process_table;
struct record;

/* An empty one; refs 1. */
struct process_table *process_table_new(struct host *host, const char *sandbox, const char *name);

/* Whose it is: id, and name (""), which never change. */
const char *process_table_sandbox(const struct process_table *process_table);
const char *process_table_sandbox_name(const struct process_table *process_table);

/* Reads what an earlier life has left. What cannot be read is as if it had not been. */
void process_table_load(struct process_table *process_table);

struct process_table *process_table_ref(struct process_table *process_table);

/* Accepts NULL. */
void process_table_unref(struct process_table *process_table);

/* A new record, with the next number and a reference for the caller. ERR_EXISTS (ProcessExists)
 * when the spec's key was used already. One that is detached is on disk when this returns. */
int process_table_add(struct process_table *process_table, const struct process_spec *spec,
                      struct record **ret, struct err *err);

/* It was never started. */
void process_table_withdraw(struct process_table *process_table, struct record *record);

/* Each with a reference, or NULL. */
struct record *process_table_find(struct process_table *process_table, const char *id);
struct record *process_table_find_key(struct process_table *process_table, const char *key);

/* Oldest first, each with a reference; the caller frees the list. */
struct record **process_table_list(struct process_table *process_table, size_t *ret_count);

/* The record of a process that the guest still has; a new one where there is none. With a
 * reference. */
struct record *process_table_adopt(struct process_table *process_table, uint32_t number);

/* Whatever is not over and was not adopted has ended like this. */
void process_table_settle(struct process_table *process_table, const struct process_end *end);

/* No number up to this one will be used again. */
void process_table_skip(struct process_table *process_table, uint32_t number);

/* Brings output to disk: what memory is not to hold, of a process that is over what is long, or
 * everything. The caller is the only one to do so. */
enum spool_extent { SPOOL_EXCESS, SPOOL_LONG, SPOOL_EVERYTHING };
void process_table_spool(struct process_table *process_table, struct record *record,
                         enum spool_extent extent);

/* Writes what is known of records (all of which may be of different sandboxes) to disk. */
struct process_table_entry {
    struct process_table *process_table;
    struct record *record;
};
void process_table_write(struct host *host, const struct process_table_entry *entries,
                         size_t count);

/* Forgets what has ended too long ago, and moves *next_ms forward to when there is more to. */
void process_table_expire(struct process_table *process_table, uint64_t now_ms, uint64_t *next_ms);

/* The record of a live process is opened again on what the guest has not forgotten. */
void process_table_resume(struct process_table *process_table, struct record *record,
                          const uint64_t acked[static PROCESS_STREAMS]);

/* Deletes all that is on disk; nothing will be written there again. */
void process_table_purge(struct process_table *process_table);
