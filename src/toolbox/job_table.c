// SPDX-License-Identifier: Apache-2.0
#include "toolbox/job_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "base/xalloc.h"
#include "toolbox/tool_internal.h"

enum { THREADS_MAX = 128, STACK_BYTES = 512 * 1024 };

struct tool_job_table {
    struct lock lock; /* protects all fields below */
    struct cond changed;
    struct tool_job *jobs; /* with an id; the table holds a reference to each */
    unsigned threads;
};

/* The argument of a thread. */
struct adoption {
    struct tool_job_table *jobs;
    struct tool_job *job;
};

struct tool_job_table *tool_job_table_new(void)
{
    struct tool_job_table *jobs = xcalloc(1, sizeof(*jobs));

    lock_init(&jobs->lock, LOCK_TOOL_JOBS);
    cond_init(&jobs->changed);
    return jobs;
}

void tool_job_table_close(struct tool_job_table *jobs)
{
    lock_take(&jobs->lock);
    while (jobs->threads > 0)
        cond_wait(&jobs->changed, &jobs->lock);
    lock_release(&jobs->lock);
    cond_destroy(&jobs->changed);
    lock_destroy(&jobs->lock);
    free(jobs);
}

/* A rollback starts a new generation and so discards earlier calls, except itself; a call that is
 * looked for by its id alone may be of any. */
static bool is_same_call(const struct tool_job *one, const struct tool_job *other)
{
    return one->sandbox == other->sandbox && strcmp(one->call_id, other->call_id) == 0 &&
           (one->generation == other->generation || !other->digest[0] ||
            strcmp(one->tool->name, "rollback") == 0);
}

/* Needs the lock. */
static struct tool_job *job_find(const struct tool_job_table *jobs, const struct tool_job *job)
{
    struct tool_job *found = jobs->jobs;

    while (found && !is_same_call(found, job))
        found = found->next;
    return found ? tool_job_ref(found) : NULL;
}

struct tool_job *tool_job_table_find(struct tool_job_table *jobs, const struct tool_job *job)
{
    lock_scope(&jobs->lock);

    return job_find(jobs, job);
}

struct tool_job *tool_job_table_enter(struct tool_job_table *jobs, struct tool_job *job)
{
    struct tool_job *found;

    lock_take(&jobs->lock);
    found = job_find(jobs, job);
    if (!found) {
        job->next = jobs->jobs;
        jobs->jobs = tool_job_ref(job);
    }
    lock_release(&jobs->lock);
    return found;
}

void tool_job_table_leave(struct tool_job_table *jobs, struct tool_job *job)
{
    struct tool_job **slot = &jobs->jobs;
    bool was_there;

    lock_take(&jobs->lock);
    while (*slot && *slot != job)
        slot = &(*slot)->next;
    was_there = *slot;
    if (was_there)
        *slot = job->next;
    lock_release(&jobs->lock);
    if (was_there)
        tool_job_unref(job);
}

static void adopter_main(void *argument)
{
    struct adoption *adoption = argument;
    struct tool_job_table *jobs = adoption->jobs;
    struct tool_progress ignored;

    while (tool_job_drive(adoption->job, -1, &ignored) > 0)
        ;
    tool_job_unref(adoption->job);
    free(adoption);
    lock_scope(&jobs->lock);
    jobs->threads--;
    cond_broadcast(&jobs->changed);
}

static bool adopter_claim(struct tool_job_table *jobs)
{
    bool is_free;
    lock_scope(&jobs->lock);

    is_free = jobs->threads < THREADS_MAX;
    jobs->threads += is_free;
    return is_free;
}

int tool_job_table_adopt(struct tool_job_table *jobs, struct tool_job *job)
{
    struct adoption *adoption;

    if (!adopter_claim(jobs))
        return -EAGAIN;
    adoption = xcalloc(1, sizeof(*adoption));
    *adoption = (struct adoption){ jobs, job };
    if (thread_start_detached("holt-tool-job", STACK_BYTES, adopter_main, adoption) == 0)
        return 0;
    free(adoption);
    lock_take(&jobs->lock);
    jobs->threads--;
    lock_release(&jobs->lock);
    return -EAGAIN;
}
