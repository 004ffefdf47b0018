// SPDX-License-Identifier: Apache-2.0
#include "host/process/writer.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/process/process_internal.h"
#include "host/process/record_internal.h"
#include "host/process/restart.h"
#include "host/process/table.h"

enum { LATER_MS = 50, BATCH_MAX = 256 };

/* A queue of processes, linked by next_now or next_later. */
struct process_queue {
    struct process *first, **last;
};

struct process_writer {
    struct host *host;
    struct worker worker;

    /* Under the worker's lock, as the queue links of processes: */
    struct process_queue now;
    struct process_queue later; /* each due LATER_MS after it was added */
    unsigned restarts;          /* threads at work */
    atomic_bool is_asked;
};

/* Needs the lock. */
static void writer_queue_now(struct process_writer *writer, struct process *process)
{
    if (process->is_in_now)
        return;
    process->is_in_now = true;
    process->next_now = NULL;
    *writer->now.last = process_ref(process);
    writer->now.last = &process->next_now;
    cond_signal(&writer->worker.changed);
}

void process_writer_add(struct process_writer *writer, struct process *process)
{
    lock_take(&writer->worker.lock);
    writer_queue_now(writer, process);
    lock_release(&writer->worker.lock);
}

/* Needs the lock. */
static void writer_queue_later(struct process_writer *writer, struct process *process)
{
    process->is_in_later = true;
    process->due_ms = clock_ms() + LATER_MS;
    process->next_later = NULL;
    *writer->later.last = process_ref(process);
    writer->later.last = &process->next_later;
    /* Otherwise the thread already has an earlier deadline. */
    if (writer->later.first == process)
        cond_signal(&writer->worker.changed);
}

void process_writer_add_later(struct process_writer *writer, struct process *process)
{
    lock_take(&writer->worker.lock);
    if (!process->is_in_later)
        writer_queue_later(writer, process);
    lock_release(&writer->worker.lock);
}

void process_writer_ask(struct process_writer *writer)
{
    atomic_store(&writer->is_asked, true);
    lock_take(&writer->worker.lock);
    cond_signal(&writer->worker.changed);
    lock_release(&writer->worker.lock);
}

bool process_writer_has_answered(struct process_writer *writer)
{
    return !atomic_load(&writer->is_asked);
}

/* Locked. Removes the next due process and returns it with the queue's reference; NULL: none. */
static struct process *writer_take(struct process_writer *writer, uint64_t now_ms)
{
    struct process *process = writer->now.first;

    if (process) {
        writer->now.first = process->next_now;
        if (!writer->now.first)
            writer->now.last = &writer->now.first;
        process->is_in_now = false;
        return process;
    }
    process = writer->later.first;
    if (!process || (process->due_ms > now_ms && !writer->worker.is_stopping))
        return NULL;
    writer->later.first = process->next_later;
    if (!writer->later.first)
        writer->later.last = &writer->later.first;
    process->is_in_later = false;
    return process;
}

static void writer_wait(struct process_writer *writer)
{
    const struct process *next = writer->later.first;

    (void)cond_wait_until(&writer->worker.changed, &writer->worker.lock,
                          next ? next->due_ms : CLOCK_NEVER);
}

/* Waits for due processes and returns their number; 0: the writer is stopping. */
static size_t writer_take_batch(struct process_writer *writer,
                                struct process *batch[static BATCH_MAX])
{
    size_t count = 0;

    lock_take(&writer->worker.lock);
    for (;;) {
        atomic_store(&writer->is_asked, false);
        while (count < BATCH_MAX && (batch[count] = writer_take(writer, clock_ms())))
            count++;
        if (count > 0 || writer->worker.is_stopping)
            break;
        writer_wait(writer);
    }
    lock_release(&writer->worker.lock);
    return count;
}

/* A guest that does not read now gets its acknowledgement later. A writer that stops does not wait
 * for it: the guest sends its output again to the next daemon. */
static void writer_retry(struct process_writer *writer, struct process *process)
{
    lock_take(&writer->worker.lock);
    if (!process->is_in_later && !writer->worker.is_stopping)
        writer_queue_later(writer, process);
    lock_release(&writer->worker.lock);
}

/* A restart waits for the old control group to become empty and for the guest, so it runs on a
 * thread of its own: the writer must not be held up by one sandbox. */
static void restart_main(void *argument)
{
    struct process *process = argument;
    struct process_writer *writer = process->machine->host->writer;

    process_respawn(process);
    lock_take(&writer->worker.lock);
    atomic_store(&process->is_restarting, false);
    if (!writer->worker.is_stopping)
        writer_queue_now(writer, process); /* for output that the writer left alone meanwhile */
    lock_release(&writer->worker.lock);
    process_unref(process);
    lock_take(&writer->worker.lock);
    writer->restarts--;
    cond_broadcast(&writer->worker.changed);
    lock_release(&writer->worker.lock);
}

static void writer_restart(struct process *process)
{
    struct process_writer *writer = process->machine->host->writer;
    int r;

    atomic_store(&process->is_restarting, true);
    lock_take(&writer->worker.lock);
    writer->restarts++;
    lock_release(&writer->worker.lock);
    r = thread_start_detached("holt-restart", 0, restart_main, process_ref(process));
    if (r < 0)
        restart_main(process);
}

/* Writes the output of a process and returns whether its record has to be written. Output comes
 * first, so that a record with an end implies complete output. */
static bool writer_spool(struct process *process)
{
    bool is_over = process_is_over(process), wants;

    process_set_timers(process);
    if (atomic_load(&process->is_restarting))
        return false;
    if (process->is_settled) /* its end is already on disk */
        return false;
    if (process_claim_restart(process)) {
        writer_restart(process);
        return false;
    }
    process_table_spool(process->machine->process_table, process->record,
                        is_over ? SPOOL_LONG : SPOOL_EXCESS);
    if (!process_try_acknowledge(process) && !is_over)
        writer_retry(process->machine->host->writer, process);
    wants = is_over || !process->is_recorded;
    process->is_recorded = true;
    process->is_ending = is_over;
    return wants;
}

static void writer_handle_batch(struct process_writer *writer, struct process *const *batch,
                                size_t count)
{
    struct process_table_entry entries[BATCH_MAX];
    size_t wanted = 0;

    for (size_t i = 0; i < count; i++)
        if (writer_spool(batch[i]))
            entries[wanted++] =
                (struct process_table_entry){ batch[i]->machine->process_table, batch[i]->record };
    if (wanted > 0)
        process_table_write(writer->host, entries, wanted);
    for (size_t i = 0; i < count; i++) {
        if (batch[i]->is_ending && !batch[i]->is_settled)
            process_set_settled(batch[i]);
        process_unref(batch[i]);
    }
}

static void process_writer_main(void *argument)
{
    struct process_writer *writer = argument;
    struct process *batch[BATCH_MAX];
    size_t count;

    while ((count = writer_take_batch(writer, batch)) > 0)
        writer_handle_batch(writer, batch, count);
}

int process_writer_start(struct host *host, struct process_writer **ret, struct err *err)
{
    struct process_writer *writer = xcalloc(1, sizeof(*writer));
    int r;

    writer->host = host;
    writer->now.last = &writer->now.first;
    writer->later.last = &writer->later.first;
    worker_init(&writer->worker, LOCK_PROCESS_WRITER);
    r = thread_start(&writer->worker.thread, "holt-writer", process_writer_main, writer);
    if (r < 0) {
        free(writer);
        return err_sys(err, r, "start the process writer");
    }
    *ret = writer;
    return 0;
}

void process_writer_stop(struct process_writer *writer)
{
    if (!writer)
        return;
    worker_stop(&writer->worker);
    lock_take(&writer->worker.lock);
    while (writer->restarts > 0)
        cond_wait(&writer->worker.changed, &writer->worker.lock);
    lock_release(&writer->worker.lock);
    worker_destroy(&writer->worker);
    free(writer);
}
