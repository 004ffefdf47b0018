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

#include "base/lock.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/observe/event_internal.h"
#include "host/process/journal.h"
#include "host/process/output_file.h"
#include "host/process/record_internal.h"
#include "host/sandbox/info.h"

struct ledger {
    struct host *host;
    char sandbox[SANDBOX_ID_MAX];
    char name[SANDBOX_NAME_MAX + 1]; /* of the sandbox */
    atomic_int refs;
    atomic_bool is_purged; /* the sandbox is being destroyed */

    struct lock lock; /* over all below */
    struct record *first; /* by number */
    struct record **last; /* where the next one goes */
    uint32_t last_number;
};

static void append(struct ledger *ledger, struct record *record)
{
    *ledger->last = record;
    ledger->last = &record->next;
    if (ledger->last_number < record->number)
        ledger->last_number = record->number;
}

/* Locked. Takes a record off the list, whose reference is then the caller's. */
static bool take_out(struct ledger *ledger, const struct record *record)
{
    struct record **slot = &ledger->first;

    while (*slot && *slot != record)
        slot = &(*slot)->next;
    if (!*slot)
        return false;
    *slot = record->next;
    if (ledger->last == &record->next)
        ledger->last = slot;
    return true;
}

struct ledger *ledger_new(struct host *host, const char *sandbox, const char *name)
{
    struct ledger *ledger = xcalloc(1, sizeof(*ledger));

    ledger->host = host;
    atomic_init(&ledger->refs, 1);
    (void)snprintf(ledger->sandbox, sizeof(ledger->sandbox), "%s", sandbox);
    (void)snprintf(ledger->name, sizeof(ledger->name), "%s", name);
    lock_init(&ledger->lock, LOCK_PROCESS_TABLE);
    ledger->last = &ledger->first;
    return ledger;
}

const char *ledger_sandbox(const struct ledger *ledger)
{
    return ledger->sandbox;
}

const char *ledger_sandbox_name(const struct ledger *ledger)
{
    return ledger->name;
}

static void take_loaded(void *context, struct record *record)
{
    struct ledger *ledger = context;

    if (record->is_over)
        ledger_files_reopen(ledger->host->outputs_fd, ledger->sandbox, record, 0);
    append(ledger, record);
}

void ledger_load(struct ledger *ledger)
{
    struct host *host = ledger->host;
    struct err err = { 0 };

    if (journal_load(host->journal, ledger->sandbox, host->output_disk, take_loaded, ledger, &err) <
        0)
        log_warn("processes of sandbox '%s' are not known: %s", ledger->sandbox, err.msg);
}

struct ledger *ledger_ref(struct ledger *ledger)
{
    atomic_fetch_add(&ledger->refs, 1);
    return ledger;
}

void ledger_unref(struct ledger *ledger)
{
    struct record *record, *next;

    if (!ledger || atomic_fetch_sub(&ledger->refs, 1) != 1)
        return;
    for (record = ledger->first; record; record = next) {
        next = record->next;
        record_unref(record);
    }
    lock_destroy(&ledger->lock);
    free(ledger);
}

/* Locked. */
static struct record *find_key(const struct ledger *ledger, const char *key)
{
    struct record *record = ledger->first;

    while (record && !(record->spec->key && strcmp(record->spec->key, key) == 0))
        record = record->next;
    return record;
}

int ledger_add(struct ledger *ledger, const struct process_spec *spec, struct record **ret,
               struct err *err)
{
    struct record *record = NULL;

    lock_take(&ledger->lock);
    if (!spec->key || !find_key(ledger, spec->key)) {
        record = record_new(ledger->last_number + 1, spec, ledger->host->output_disk);
        record->started_ms = clock_wall_ms();
        append(ledger, record_ref(record));
    }
    lock_release(&ledger->lock);
    if (!record)
        return err_refuse(err, CAUSE_PROCESS_EXISTS,
                          "sandbox '%s' has a process with the key '%.100s' already",
                          ledger->sandbox, spec->key);
    if (spec->is_detached)
        ledger_write(ledger->host, &(struct ledger_entry){ ledger, record }, 1);
    *ret = record;
    return 0;
}

static void forget(struct ledger *ledger, struct record *record)
{
    struct err ignored;

    (void)journal_remove(ledger->host->journal, ledger->sandbox, record->number, &ignored);
    ledger_files_remove(ledger->host->outputs_fd, ledger->sandbox, record);
    record_unref(record);
}

void ledger_withdraw(struct ledger *ledger, struct record *record)
{
    bool was_there;

    lock_take(&ledger->lock);
    was_there = take_out(ledger, record);
    lock_release(&ledger->lock);
    if (was_there)
        forget(ledger, record);
}

struct record *ledger_find(struct ledger *ledger, const char *id)
{
    struct record *record;

    lock_take(&ledger->lock);
    record = ledger->first;
    while (record && strcmp(record->id, id) != 0)
        record = record->next;
    if (record)
        (void)record_ref(record);
    lock_release(&ledger->lock);
    return record;
}

struct record *ledger_find_key(struct ledger *ledger, const char *key)
{
    struct record *record;

    lock_take(&ledger->lock);
    record = find_key(ledger, key);
    if (record)
        (void)record_ref(record);
    lock_release(&ledger->lock);
    return record;
}

struct record **ledger_list(struct ledger *ledger, size_t *ret_count)
{
    struct record **list;
    size_t count = 0;

    lock_take(&ledger->lock);
    for (const struct record *record = ledger->first; record; record = record->next)
        count++;
    list = xcalloc(count + 1, sizeof(*list));
    count = 0;
    for (struct record *record = ledger->first; record; record = record->next)
        list[count++] = record_ref(record);
    lock_release(&ledger->lock);
    *ret_count = count;
    return list;
}

/* --- after a restart ------------------------------------------------------------------------- */

struct record *ledger_adopt(struct ledger *ledger, uint32_t number)
{
    static char *const no_words[] = { NULL };
    static const struct process_spec unknown = { .args = no_words, .is_detached = true };
    struct record *record;

    lock_take(&ledger->lock);
    record = ledger->first;
    while (record && record->number != number)
        record = record->next;
    if (!record) {
        record = record_new(number, &unknown, ledger->host->output_disk);
        record->started_ms = clock_wall_ms();
        append(ledger, record);
    }
    record->is_adopted = true;
    (void)record_ref(record);
    lock_release(&ledger->lock);
    return record;
}

void ledger_resume(struct ledger *ledger, struct record *record,
                   const uint64_t acked[static PROCESS_STREAMS])
{
    lock_take(&record->lock);
    for (int i = 0; i < PROCESS_STREAMS; i++)
        window_init(&record->streams[i].window, FRAME_WINDOW, acked[i]);
    lock_release(&record->lock);
    ledger_files_reopen(ledger->host->outputs_fd, ledger->sandbox, record, FRAME_WINDOW);
}

void ledger_settle(struct ledger *ledger, const struct process_end *end)
{
    size_t count;
    cleanup_free struct record **list = ledger_list(ledger, &count);

    for (size_t i = 0; i < count; i++) {
        struct record *record = list[i];

        if (!record_is_over(record) && !record->is_adopted) {
            ledger_files_recover(ledger->host->outputs_fd, ledger->sandbox, record);
            record_finish(record, end, clock_wall_ms());
            ledger_event(ledger, ledger->host, EVENT_PROCESS_EXITED,
                         process_end_fields(record->id, end));
            ledger_write(ledger->host, &(struct ledger_entry){ ledger, record }, 1);
        }
        record_unref(record);
    }
}

void ledger_skip(struct ledger *ledger, uint32_t number)
{
    lock_take(&ledger->lock);
    if (ledger->last_number < number)
        ledger->last_number = number;
    lock_release(&ledger->lock);
}

/* --- forgetting ------------------------------------------------------------------------------ */

/* When it ended; 0: it runs, or the end is not on disk yet. */
static uint64_t ended_of(struct record *record)
{
    uint64_t ended_ms;

    lock_take(&record->lock);
    ended_ms = record->writer ? 0 : record->ended_ms;
    lock_release(&record->lock);
    return ended_ms;
}

/* Locked. */
static size_t count_ended(const struct ledger *ledger)
{
    size_t count = 0;

    for (struct record *record = ledger->first; record; record = record->next)
        count += ended_of(record) > 0;
    return count;
}

/* Locked. Those to forget, as a list, and when the next one is due. The newest stays, so that its
 * number is not used again. */
static struct record *take_expired(struct ledger *ledger, uint64_t now_ms, uint64_t *ret_next_ms)
{
    const struct host *host = ledger->host;
    size_t ended = count_ended(ledger), most = host->processes_max;
    size_t excess = ended > most ? ended - most : 0;
    struct record *expired = NULL, *next;

    for (struct record *record = ledger->first; record && record->next; record = next) {
        uint64_t ended_ms = ended_of(record), due_ms = ended_ms + host->processes_keep_ms;

        next = record->next;
        if (ended_ms == 0)
            continue;
        if (excess == 0 && due_ms > now_ms) {
            *ret_next_ms = due_ms < *ret_next_ms ? due_ms : *ret_next_ms;
            continue;
        }
        excess -= excess > 0;
        (void)take_out(ledger, record);
        record->next = expired;
        expired = record;
    }
    return expired;
}

void ledger_expire(struct ledger *ledger, uint64_t now_ms, uint64_t *next_ms)
{
    struct record *expired, *next;

    lock_take(&ledger->lock);
    expired = take_expired(ledger, now_ms, next_ms);
    lock_release(&ledger->lock);
    for (; expired; expired = next) {
        next = expired->next;
        forget(ledger, expired);
    }
}

/* --- disk ------------------------------------------------------------------------------------ */

static void erase(struct ledger *ledger)
{
    struct err ignored;

    (void)journal_remove_sandbox(ledger->host->journal, ledger->sandbox, &ignored);
    (void)tree_remove_at(ledger->host->outputs_fd, ledger->sandbox);
}

void ledger_purge(struct ledger *ledger)
{
    atomic_store(&ledger->is_purged, true);
    erase(ledger);
}

/* Whoever wrote while it was purged does that again. */
static void erase_if_purged(struct ledger *ledger)
{
    if (atomic_load(&ledger->is_purged))
        erase(ledger);
}

void ledger_spool(struct ledger *ledger, struct record *record, enum spool_extent extent)
{
    const struct host *host = ledger->host;
    const uint64_t from_bytes[] = {
        [SPOOL_EXCESS] = host->output_memory,
        [SPOOL_LONG] = RECORD_INLINE_MAX + 1,
        [SPOOL_EVERYTHING] = 1,
    };

    for (int i = 0; i < PROCESS_STREAMS; i++)
        ledger_file_write(host->outputs_fd, ledger->sandbox, record, i, from_bytes[extent],
                          extent != SPOOL_EXCESS);
    erase_if_purged(ledger);
}

void ledger_write(struct host *host, const struct ledger_entry *entries, size_t count)
{
    cleanup_free struct journal_entry *rows = xcalloc(count + 1, sizeof(*rows));
    struct err err = { 0 };

    for (size_t i = 0; i < count; i++)
        rows[i] = (struct journal_entry){ entries[i].ledger->sandbox, entries[i].record };
    if (journal_put(host->journal, rows, count, &err) < 0)
        log_warn("%s", err.msg);
    for (size_t i = 0; i < count; i++)
        erase_if_purged(entries[i].ledger);
}
