/* The process table of a sandbox: the records of its running and recently ended processes.
 * Reference counted; every function may be called from any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/process/process.h"

struct err;
struct host;
struct process_table;
struct record;
struct sandbox_info;

/* Allocates an empty table with one reference. */
struct process_table *process_table_new(struct host *host, const struct sandbox_info *info);

/* Return the id, the owner and the name ("": none) of the sandbox; all but the name are constant.
 */
const char *process_table_owner(const struct process_table *process_table);
const char *process_table_sandbox(const struct process_table *process_table);
const char *process_table_sandbox_name(const struct process_table *process_table);

/* Changes that name; threads that make events read it with sandbox_name_copy. */
void process_table_rename(struct process_table *process_table, const char *name);

/* Loads the records of a previous daemon. Records that cannot be read are ignored. */
void process_table_load(struct process_table *process_table);

struct process_table *process_table_ref(struct process_table *process_table);

/* Accepts NULL. */
void process_table_unref(struct process_table *process_table);

/* Adds a record with the next number and a reference for the caller. ERR_EXISTS (ProcessExists)
 * if the spec's key is in use. The record of a detached process is in the journal on return. */
int process_table_add(struct process_table *process_table, const struct process_spec *spec,
                      struct record **ret, struct err *err);

/* Removes the record of a process that could not be started. */
void process_table_withdraw(struct process_table *process_table, struct record *record);

/* Find a record by id or idempotency key, and take a reference; NULL: none. */
struct record *process_table_find(struct process_table *process_table, const char *id);
struct record *process_table_find_key(struct process_table *process_table, const char *key);

/* Lists the records, oldest first, each with a reference; the caller frees the list. */
struct record **process_table_list(struct process_table *process_table, size_t *ret_count);

/* Returns the record of a process that the guest still has, or a new one, with a reference. */
struct record *process_table_adopt(struct process_table *process_table, uint32_t number);

/* Gives this outcome to all running processes that were not adopted. */
void process_table_end_unadopted(struct process_table *process_table,
                                 const struct process_end *end);

/* Reserves all numbers up to this one. */
void process_table_skip(struct process_table *process_table, uint32_t number);

/* Writes output to disk: what exceeds the memory limit, all of a long stream, or all. Only one
 * thread may do so at a time. */
enum spool_extent { SPOOL_EXCESS, SPOOL_LONG, SPOOL_EVERYTHING };
void process_table_spool(struct process_table *process_table, struct record *record,
                         enum spool_extent extent);

/* Writes records, of one sandbox or several, to the journal. */
struct process_table_entry {
    struct process_table *process_table;
    struct record *record;
};
void process_table_write(struct host *host, const struct process_table_entry *entries,
                         size_t count);

/* Removes the records of processes that had ended too long ago at `now` of clock_boot_ms, and
 * lowers *wait_ms to the time until the next removal. */
void process_table_expire(struct process_table *process_table, int64_t now, uint64_t *wait_ms);

/* Reopens the streams of an adopted process at the offsets that the guest still has. */
void process_table_resume(struct process_table *process_table, struct record *record,
                          const uint64_t acked[static PROCESS_STREAMS]);

/* Deletes everything on disk and prevents further writes. */
void process_table_purge(struct process_table *process_table);
