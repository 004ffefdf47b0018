// SPDX-License-Identifier: Apache-2.0
#include "toolbox/job_table.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/xalloc.h"
#include "toolbox/tool_internal.h"

enum { THREADS_MAX = 128, STACK_BYTES = 512 * 1024 };

struct tool_desk {
    atomic_int active;
    struct lock lock; /* over all below; nothing is locked inside */
    pthread_cond_t changed;
    struct tool_job *jobs; /* that have an id, each with a reference */
    unsigned threads;
};

/* What a thread gets. */
struct adoption {
    struct tool_desk *desk;
    struct tool_job *job;
};

struct tool_desk *tool_desk_new(void)
{
    struct tool_desk *desk = xcalloc(1, sizeof(*desk));

    lock_init(&desk->lock, LOCK_TOOL_JOBS);
    (void)pthread_cond_init(&desk->changed, NULL);
    return desk;
}

void tool_desk_close(struct tool_desk *desk)
{
    if (!desk)
        return;
    lock_take(&desk->lock);
    while (desk->threads > 0)
        (void)pthread_cond_wait(&desk->changed, &desk->lock.mutex);
    lock_release(&desk->lock);
    (void)pthread_cond_destroy(&desk->changed);
    lock_destroy(&desk->lock);
    free(desk);
}

/* A rollback forgets calls; but the one that makes it is itself not forgotten. */
static bool is_same(const struct tool_job *one, const struct tool_job *other)
{
    return one->sandbox == other->sandbox && strcmp(one->call_id, other->call_id) == 0 &&
           (one->generation == other->generation || strcmp(one->tool->name, "rollback") == 0);
}

struct tool_job *tool_desk_enter(struct tool_desk *desk, struct tool_job *job)
{
    struct tool_job *found;

    lock_take(&desk->lock);
    found = desk->jobs;
    while (found && !is_same(found, job))
        found = found->next;
    if (found) {
        (void)tool_job_ref(found);
    } else {
        job->next = desk->jobs;
        desk->jobs = tool_job_ref(job);
    }
    lock_release(&desk->lock);
    return found;
}

void tool_desk_leave(struct tool_desk *desk, struct tool_job *job)
{
    struct tool_job **slot = &desk->jobs;
    bool was_there;

    lock_take(&desk->lock);
    while (*slot && *slot != job)
        slot = &(*slot)->next;
    was_there = *slot;
    if (was_there)
        *slot = job->next;
    lock_release(&desk->lock);
    if (was_there)
        tool_job_unref(job);
}

static void *thread_main(void *argument)
{
    struct adoption *adoption = argument;
    struct tool_desk *desk = adoption->desk;
    struct tool_progress ignored;

    while (tool_job_drive(adoption->job, -1, &ignored) > 0)
        ;
    tool_job_unref(adoption->job);
    free(adoption);
    lock_take(&desk->lock);
    desk->threads--;
    (void)pthread_cond_broadcast(&desk->changed);
    lock_release(&desk->lock);
    return NULL;
}

static bool claim_thread(struct tool_desk *desk)
{
    bool is_free;

    lock_take(&desk->lock);
    is_free = desk->threads < THREADS_MAX;
    desk->threads += is_free;
    lock_release(&desk->lock);
    return is_free;
}

static int start(struct adoption *adoption)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int r;

    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    r = -pthread_create(&thread, &attributes, thread_main, adoption);
    (void)pthread_attr_destroy(&attributes);
    return r;
}

int tool_desk_adopt(struct tool_desk *desk, struct tool_job *job)
{
    struct adoption *adoption;

    if (!claim_thread(desk))
        return -EAGAIN;
    adoption = xcalloc(1, sizeof(*adoption));
    *adoption = (struct adoption){ desk, job };
    if (start(adoption) == 0)
        return 0;
    free(adoption);
    lock_take(&desk->lock);
    desk->threads--;
    lock_release(&desk->lock);
    return -EAGAIN;
}

void tool_desk_count(struct tool_desk *desk, int change)
{
    atomic_fetch_add_explicit(&desk->active, change, memory_order_relaxed);
}

uint32_t tool_desk_active(const struct tool_desk *desk)
{
    return (uint32_t)atomic_load_explicit(&desk->active, memory_order_relaxed);
}
