// SPDX-License-Identifier: Apache-2.0
#include "host/process/writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/lock.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "host/process/process_internal.h"
#include "host/process/record_internal.h"
#include "host/process/restart.h"
#include "host/process/table.h"

enum { LATER_MS = 50, BATCH_MAX = 256 };

/* Processes in a row, by one of the two links that each has. */
struct row {
    struct process *first, **last;
};

struct scribe {
    struct host *host;
    pthread_t thread;

    struct lock lock; /* over all below, and the links of processes */
    pthread_cond_t changed;
    struct row now;
    struct row later; /* each due LATER_MS after it was added */
    bool is_stopping;
    atomic_bool is_asked;
};

void scribe_add(struct scribe *scribe, struct process *process)
{
    lock_take(&scribe->lock);
    if (!process->is_in_now) {
        process->is_in_now = true;
        process->next_now = NULL;
        *scribe->now.last = process_ref(process);
        scribe->now.last = &process->next_now;
        (void)pthread_cond_signal(&scribe->changed);
    }
    lock_release(&scribe->lock);
}

void scribe_add_later(struct scribe *scribe, struct process *process)
{
    lock_take(&scribe->lock);
    process->due_ms = clock_ms() + LATER_MS;
    process->next_later = NULL;
    *scribe->later.last = process_ref(process);
    scribe->later.last = &process->next_later;
    /* Else it wakes up by itself. */
    if (scribe->later.first == process)
        (void)pthread_cond_signal(&scribe->changed);
    lock_release(&scribe->lock);
}

void scribe_ask(struct scribe *scribe)
{
    atomic_store(&scribe->is_asked, true);
    lock_take(&scribe->lock);
    (void)pthread_cond_signal(&scribe->changed);
    lock_release(&scribe->lock);
}

bool scribe_has_answered(struct scribe *scribe)
{
    return !atomic_load(&scribe->is_asked);
}

/* Locked. The next one that is to be looked at, with the row's reference; or NULL. */
static struct process *take(struct scribe *scribe, uint64_t now_ms)
{
    struct process *process = scribe->now.first;

    if (process) {
        scribe->now.first = process->next_now;
        if (!scribe->now.first)
            scribe->now.last = &scribe->now.first;
        process->is_in_now = false;
        return process;
    }
    process = scribe->later.first;
    if (!process || (process->due_ms > now_ms && !scribe->is_stopping))
        return NULL;
    scribe->later.first = process->next_later;
    if (!scribe->later.first)
        scribe->later.last = &scribe->later.first;
    return process;
}

static void wait_for_work(struct scribe *scribe)
{
    struct timespec until;

    if (!scribe->later.first) {
        (void)pthread_cond_wait(&scribe->changed, &scribe->lock.mutex);
        return;
    }
    until = (struct timespec){ .tv_sec = (time_t)(scribe->later.first->due_ms / 1000),
                               .tv_nsec = (long)(scribe->later.first->due_ms % 1000) * 1000000 };
    (void)pthread_cond_timedwait(&scribe->changed, &scribe->lock.mutex, &until);
}

/* Those to look at now; 0 only when it is to end. */
static size_t take_batch(struct scribe *scribe, struct process *batch[static BATCH_MAX])
{
    size_t count = 0;

    lock_take(&scribe->lock);
    for (;;) {
        atomic_store(&scribe->is_asked, false);
        while (count < BATCH_MAX && (batch[count] = take(scribe, clock_ms())))
            count++;
        if (count > 0 || scribe->is_stopping)
            break;
        wait_for_work(scribe);
    }
    lock_release(&scribe->lock);
    return count;
}

/* Output first: a record must not say that it is over while output is nowhere. */
static bool wants_record(struct process *process)
{
    bool is_over = process_is_over(process), wants;

    process_set_timers(process);
    if (process->is_settled) /* it was looked at after it had ended */
        return false;
    if (process_take_restart(process)) {
        process_respawn(process);
        return false;
    }
    ledger_spool(process->machine->ledger, process->record, is_over ? SPOOL_LONG : SPOOL_EXCESS);
    process_acknowledge(process);
    wants = is_over || !process->is_recorded;
    process->is_recorded = true;
    process->is_ending = is_over;
    return wants;
}

static void serve(struct scribe *scribe, struct process *const *batch, size_t count)
{
    struct ledger_entry entries[BATCH_MAX];
    size_t wanted = 0;

    for (size_t i = 0; i < count; i++)
        if (wants_record(batch[i]))
            entries[wanted++] =
                (struct ledger_entry){ batch[i]->machine->ledger, batch[i]->record };
    if (wanted > 0)
        ledger_write(scribe->host, entries, wanted);
    for (size_t i = 0; i < count; i++) {
        if (batch[i]->is_ending && !batch[i]->is_settled)
            process_note_settled(batch[i]);
        process_unref(batch[i]);
    }
}

static void *scribe_main(void *argument)
{
    struct scribe *scribe = argument;
    struct process *batch[BATCH_MAX];
    size_t count;

    while ((count = take_batch(scribe, batch)) > 0)
        serve(scribe, batch, count);
    return NULL;
}

int scribe_start(struct host *host, struct scribe **ret, struct err *err)
{
    struct scribe *scribe = xcalloc(1, sizeof(*scribe));
    pthread_condattr_t monotonic;
    int r;

    scribe->host = host;
    scribe->now.last = &scribe->now.first;
    scribe->later.last = &scribe->later.first;
    lock_init(&scribe->lock, LOCK_PROCESS_WRITER);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&scribe->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    r = -pthread_create(&scribe->thread, NULL, scribe_main, scribe);
    if (r < 0) {
        free(scribe);
        return err_sys(err, r, "start the scribe");
    }
    *ret = scribe;
    return 0;
}

void scribe_stop(struct scribe *scribe)
{
    if (!scribe)
        return;
    lock_take(&scribe->lock);
    scribe->is_stopping = true;
    (void)pthread_cond_signal(&scribe->changed);
    lock_release(&scribe->lock);
    (void)pthread_join(scribe->thread, NULL);
    (void)pthread_cond_destroy(&scribe->changed);
    lock_destroy(&scribe->lock);
    free(scribe);
}
