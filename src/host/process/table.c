// SPDX-License-Identifier: Apache-2.0
#include "host/process/table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/observe/event_internal.h"
#include "host/process/journal.h"
#include "host/process/output_file.h"
#include "host/process/record_internal.h"
#include "host/sandbox/name.h"
#include "wire/frame.h"

struct process_table {
    struct host *host;
    char sandbox[SANDBOX_ID_MAX];
    char owner[OWNER_NAME_MAX + 1];  /* of the sandbox */
    char name[SANDBOX_NAME_MAX + 1]; /* likewise */
    atomic_int refs;
    atomic_bool is_purged; /* the sandbox is being destroyed */

    struct lock lock;     /* protects everything below */
    struct record *first; /* by number */
    struct record **last; /* end of the list */
    uint32_t last_number;
};

static void table_append(struct process_table *process_table, struct record *record)
{
    *process_table->last = record;
    process_table->last = &record->next;
    if (process_table->last_number < record->number)
        process_table->last_number = record->number;
}

/* Locked. Removes a record from the list; its reference passes to the caller. */
static bool table_remove(struct process_table *process_table, const struct record *record)
{
    struct record **slot = &process_table->first;

    while (*slot && *slot != record)
        slot = &(*slot)->next;
    if (!*slot)
        return false;
    *slot = record->next;
    if (process_table->last == &record->next)
        process_table->last = slot;
    return true;
}

struct process_table *process_table_new(struct host *host, const struct sandbox_info *info)
{
    struct process_table *process_table = xcalloc(1, sizeof(*process_table));

    process_table->host = host;
    atomic_init(&process_table->refs, 1);
    (void)snprintf(process_table->sandbox, sizeof(process_table->sandbox), "%s", info->id);
    (void)snprintf(process_table->owner, sizeof(process_table->owner), "%s", info->owner);
    (void)snprintf(process_table->name, sizeof(process_table->name), "%s", info->name);
    lock_init(&process_table->lock, LOCK_PROCESS_TABLE);
    process_table->last = &process_table->first;
    return process_table;
}

const char *process_table_sandbox(const struct process_table *process_table)
{
    return process_table->sandbox;
}

const char *process_table_owner(const struct process_table *process_table)
{
    return process_table->owner;
}

const char *process_table_sandbox_name(const struct process_table *process_table)
{
    return process_table->name;
}

void process_table_rename(struct process_table *process_table, const char *name)
{
    sandbox_name_set(process_table->name, name);
}

static void table_add_loaded(void *context, struct record *record)
{
    struct process_table *process_table = context;

    if (record->is_over)
        output_files_reopen(process_table->host->outputs_fd, process_table->sandbox, record, 0);
    table_append(process_table, record);
}

void process_table_load(struct process_table *process_table)
{
    struct host *host = process_table->host;
    struct err err = { 0 };

    if (journal_load(host->journal, process_table->sandbox, host->output_disk, table_add_loaded,
                     process_table, &err) < 0)
        log_warn("cannot load the processes of sandbox '%s': %s", process_table->sandbox, err.msg);
}

struct process_table *process_table_ref(struct process_table *process_table)
{
    atomic_fetch_add(&process_table->refs, 1);
    return process_table;
}

void process_table_unref(struct process_table *process_table)
{
    struct record *record, *next;

    if (!process_table || atomic_fetch_sub(&process_table->refs, 1) != 1)
        return;
    for (record = process_table->first; record; record = next) {
        next = record->next;
        record_unref(record);
    }
    lock_destroy(&process_table->lock);
    free(process_table);
}

/* Locked. */
static struct record *table_find_key(const struct process_table *process_table, const char *key)
{
    struct record *record = process_table->first;

    while (record && !(record->spec->key && strcmp(record->spec->key, key) == 0))
        record = record->next;
    return record;
}

int process_table_add(struct process_table *process_table, const struct process_spec *spec,
                      struct record **ret, struct err *err)
{
    struct record *record = NULL;

    lock_take(&process_table->lock);
    if (!spec->key || !table_find_key(process_table, spec->key)) {
        record = record_new(process_table->last_number + 1, spec, process_table->host->output_disk);
        record->started_ms = clock_wall_ms();
        table_append(process_table, record_ref(record));
    }
    lock_release(&process_table->lock);
    if (!record)
        return err_refuse(err, CAUSE_PROCESS_EXISTS,
                          "sandbox '%s' already has a process with the key '%.100s'",
                          process_table->sandbox, spec->key);
    if (spec->is_detached)
        process_table_write(process_table->host,
                            &(struct process_table_entry){ process_table, record }, 1);
    *ret = record;
    return 0;
}

static void table_forget(struct process_table *process_table, struct record *record)
{
    struct err ignored;

    (void)journal_remove(process_table->host->journal, process_table->sandbox, record->number,
                         &ignored);
    output_files_remove(process_table->host->outputs_fd, process_table->sandbox, record);
    record_unref(record);
}

void process_table_withdraw(struct process_table *process_table, struct record *record)
{
    bool was_there;

    lock_take(&process_table->lock);
    was_there = table_remove(process_table, record);
    lock_release(&process_table->lock);
    if (was_there)
        table_forget(process_table, record);
}

struct record *process_table_find(struct process_table *process_table, const char *id)
{
    struct record *record;

    lock_take(&process_table->lock);
    record = process_table->first;
    while (record && strcmp(record->id, id) != 0)
        record = record->next;
    if (record)
        (void)record_ref(record);
    lock_release(&process_table->lock);
    return record;
}

struct record *process_table_find_key(struct process_table *process_table, const char *key)
{
    struct record *record;

    lock_take(&process_table->lock);
    record = table_find_key(process_table, key);
    if (record)
        (void)record_ref(record);
    lock_release(&process_table->lock);
    return record;
}

struct record **process_table_list(struct process_table *process_table, size_t *ret_count)
{
    struct record **list;
    size_t count = 0;

    lock_take(&process_table->lock);
    for (const struct record *record = process_table->first; record; record = record->next)
        count++;
    list = xcalloc(count + 1, sizeof(*list));
    count = 0;
    for (struct record *record = process_table->first; record; record = record->next)
        list[count++] = record_ref(record);
    lock_release(&process_table->lock);
    *ret_count = count;
    return list;
}

/* --- after a restart ------------------------------------------------------------------------- */

struct record *process_table_adopt(struct process_table *process_table, uint32_t number)
{
    static char *const no_words[] = { NULL };
    static const struct process_spec unknown = { .args = no_words, .is_detached = true };
    struct record *record;

    lock_take(&process_table->lock);
    record = process_table->first;
    while (record && record->number != number)
        record = record->next;
    if (!record) {
        record = record_new(number, &unknown, process_table->host->output_disk);
        record->started_ms = clock_wall_ms();
        table_append(process_table, record);
    }
    record->is_adopted = true;
    (void)record_ref(record);
    lock_release(&process_table->lock);
    return record;
}

void process_table_resume(struct process_table *process_table, struct record *record,
                          const uint64_t acked[static PROCESS_STREAMS])
{
    lock_take(&record->lock);
    for (int i = 0; i < PROCESS_STREAMS; i++)
        window_init(&record->streams[i].window, FRAME_WINDOW, acked[i]);
    lock_release(&record->lock);
    output_files_reopen(process_table->host->outputs_fd, process_table->sandbox, record,
                        FRAME_WINDOW);
}

void process_table_end_unadopted(struct process_table *process_table, const struct process_end *end)
{
    size_t count;
    cleanup_free struct record **list = process_table_list(process_table, &count);

    for (size_t i = 0; i < count; i++) {
        struct record *record = list[i];

        if (!record_is_over(record) && !record->is_adopted) {
            output_files_recover(process_table->host->outputs_fd, process_table->sandbox, record);
            record_finish(record, end, clock_wall_ms());
            process_table_event(process_table, process_table->host, EVENT_PROCESS_EXITED,
                                process_end_fields(record->id, end));
            process_table_write(process_table->host,
                                &(struct process_table_entry){ process_table, record }, 1);
        }
        record_unref(record);
    }
}

void process_table_skip(struct process_table *process_table, uint32_t number)
{
    lock_take(&process_table->lock);
    if (process_table->last_number < number)
        process_table->last_number = number;
    lock_release(&process_table->lock);
}

/* --- expiry ---------------------------------------------------------------------------------- */

/* Returns whether the process has ended and its end is on disk; *ret_at is when, of
 * clock_boot_ms. */
static bool record_has_ended(struct record *record, int64_t *ret_at)
{
    lock_scope(&record->lock);

    *ret_at = record->ended_at;
    return !record->writer && record->ended_ms > 0;
}

/* Locked. */
static size_t table_count_ended(const struct process_table *process_table)
{
    size_t count = 0;
    int64_t at;

    for (struct record *record = process_table->first; record; record = record->next)
        count += record_has_ended(record, &at);
    return count;
}

/* Locked. Removes the expired records, returns them as a list, and lowers *wait_ms to the time
 * until the next expiry. The newest record stays, so that its number is not reused. */
static struct record *table_take_expired(struct process_table *process_table, int64_t now,
                                         uint64_t *wait_ms)
{
    const struct host *host = process_table->host;
    size_t ended = table_count_ended(process_table), most = host->processes_max;
    size_t excess = ended > most ? ended - most : 0;
    struct record *expired = NULL, *next;

    for (struct record *record = process_table->first; record && record->next; record = next) {
        int64_t ended_at;
        uint64_t age_ms, left_ms;

        next = record->next;
        if (!record_has_ended(record, &ended_at))
            continue;
        age_ms = now > ended_at ? (uint64_t)(now - ended_at) : 0;
        left_ms = age_ms < host->processes_keep_ms ? host->processes_keep_ms - age_ms : 0;
        if (excess == 0 && left_ms > 0) {
            *wait_ms = left_ms < *wait_ms ? left_ms : *wait_ms;
            continue;
        }
        excess -= excess > 0;
        (void)table_remove(process_table, record);
        record->next = expired;
        expired = record;
    }
    return expired;
}

void process_table_expire(struct process_table *process_table, int64_t now, uint64_t *wait_ms)
{
    struct record *expired, *next;

    lock_take(&process_table->lock);
    expired = table_take_expired(process_table, now, wait_ms);
    lock_release(&process_table->lock);
    for (; expired; expired = next) {
        next = expired->next;
        table_forget(process_table, expired);
    }
}

/* --- disk ------------------------------------------------------------------------------------ */

static void table_erase(struct process_table *process_table)
{
    struct err ignored;

    (void)journal_remove_sandbox(process_table->host->journal, process_table->sandbox, &ignored);
    (void)tree_remove_at(process_table->host->outputs_fd, process_table->sandbox);
}

void process_table_purge(struct process_table *process_table)
{
    atomic_store(&process_table->is_purged, true);
    table_erase(process_table);
}

/* A writer that ran concurrently with process_table_purge erases again. */
static void table_erase_if_purged(struct process_table *process_table)
{
    if (atomic_load(&process_table->is_purged))
        table_erase(process_table);
}

void process_table_spool(struct process_table *process_table, struct record *record,
                         enum spool_extent extent)
{
    const struct host *host = process_table->host;
    const uint64_t from_bytes[] = {
        [SPOOL_EXCESS] = host->output_memory,
        [SPOOL_LONG] = RECORD_INLINE_MAX + 1,
        [SPOOL_EVERYTHING] = 1,
    };

    for (int i = 0; i < PROCESS_STREAMS; i++)
        output_file_write(host->outputs_fd, process_table->sandbox, record, i, from_bytes[extent],
                          extent != SPOOL_EXCESS);
    table_erase_if_purged(process_table);
}

void process_table_write(struct host *host, const struct process_table_entry *entries, size_t count)
{
    cleanup_free struct journal_entry *rows = xcalloc(count + 1, sizeof(*rows));
    struct err err = { 0 };

    for (size_t i = 0; i < count; i++)
        rows[i] = (struct journal_entry){ entries[i].process_table->sandbox, entries[i].record };
    if (journal_put(host->journal, rows, count, &err) < 0)
        log_warn("%s", err.msg);
    for (size_t i = 0; i < count; i++)
        table_erase_if_purged(entries[i].process_table);
}
