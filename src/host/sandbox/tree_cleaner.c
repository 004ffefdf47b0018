// SPDX-License-Identifier: Apache-2.0
/* Removes the old trees of rollbacks and the files of ended machines in the background: closing the
 * last descriptor of an overlay syncs a whole filesystem, and deleting a tree is slow too. Large
 * scratch volumes are removed in parts, in turn with the others. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/sandbox/sandbox_internal.h"
#include "store/store.h"
#include "store/volume/volume.h"

/* Each holds descriptors; beyond these the callers close theirs. */
enum { MOUNTS_WAITING_MAX = 32 };

/* The old tree of a sandbox, what an ended machine has left, or mounts alone. */
struct tree_cleaner_job {
    struct tree_cleaner_job *next;
    struct machine *machine; /* NULL: the next four */
    struct sandbox *sandbox; /* referenced; NULL: only mounts */
    struct volume *volume;   /* pinned, if its storage cannot be removed while it is mounted */
    struct volume_mounts mounts;
    uint32_t generation;
};

struct tree_cleaner {
    struct worker worker;
    struct tree_cleaner_job *first, **last; /* this and the next two: under its lock */
    unsigned mounts_waiting;                /* jobs of mounts alone; under its lock too */
    uint64_t deadline_ms;                   /* when it stops: the rest is left to the next start */
    bool has_ended;
};

static void job_done(struct tree_cleaner_job *job)
{
    if (job->volume)
        sandbox_unpin(job->sandbox);
    sandbox_unref(job->sandbox);
    free(job);
}

/* Runs a job, or a part of it; returns whether there is more to do. A tree that cannot be removed
 * now remains until the sandbox is recovered or destroyed. */
static bool job_run(struct tree_cleaner_job *job)
{
    if (job->machine) {
        if (machine_clean_some(job->machine) == -EAGAIN)
            return true;
        free(job);
        return false;
    }
    volume_mounts_done(&job->mounts);
    if (!job->sandbox) {
        free(job);
        return false;
    }
    fault_point("tree_cleaner.closed");
    if (!job->volume)
        job->volume = sandbox_pin(job->sandbox); /* not before: a destroy waits for pins */
    if (job->volume)
        (void)volume_drop(job->volume, job->generation);
    fault_point("tree_cleaner.dropped");
    job_done(job);
    return false;
}

/* Locked. */
static void job_put(struct tree_cleaner *tree_cleaner, struct tree_cleaner_job *job)
{
    job->next = NULL;
    *tree_cleaner->last = job;
    tree_cleaner->last = &job->next;
    cond_broadcast(&tree_cleaner->worker.changed);
}

/* Locked. Unlinks the job at this place. */
static struct tree_cleaner_job *job_take(struct tree_cleaner *tree_cleaner,
                                         struct tree_cleaner_job **slot)
{
    struct tree_cleaner_job *job = *slot;

    *slot = job->next;
    if (!*slot)
        tree_cleaner->last = slot;
    return job;
}

/* Locked. */
static bool tree_cleaner_must_end(const struct tree_cleaner *tree_cleaner)
{
    return tree_cleaner->worker.is_stopping &&
           (!tree_cleaner->first || clock_ms() >= tree_cleaner->deadline_ms);
}

static void tree_cleaner_main(void *argument)
{
    struct tree_cleaner *tree_cleaner = argument;
    struct worker *worker = &tree_cleaner->worker;
    lock_scope(&worker->lock);

    while (!tree_cleaner_must_end(tree_cleaner)) {
        struct tree_cleaner_job *job;
        bool has_more;

        if (!tree_cleaner->first) {
            cond_wait(&worker->changed, &worker->lock);
            continue;
        }
        job = job_take(tree_cleaner, &tree_cleaner->first);
        tree_cleaner->mounts_waiting -= !job->machine && !job->sandbox;
        lock_release(&worker->lock);
        has_more = job_run(job);
        lock_take(&worker->lock);
        if (has_more)
            job_put(tree_cleaner, job);
    }
    tree_cleaner->has_ended = true;
    cond_broadcast(&worker->changed);
}

void tree_cleaner_add(struct sandbox *sandbox, struct volume_mounts *mounts, uint32_t generation)
{
    struct tree_cleaner *tree_cleaner = sandbox->host->tree_cleaner;
    bool needs_unmount = store_needs_unmount(sandbox->host->store);
    struct volume *volume = needs_unmount ? sandbox_pin(sandbox) : NULL;
    struct tree_cleaner_job *job;

    if (needs_unmount && !volume) { /* being destroyed, which removes all trees */
        volume_mounts_done(mounts);
        return;
    }
    job = xcalloc(1, sizeof(*job));
    *job = (struct tree_cleaner_job){
        .sandbox = sandbox_ref(sandbox),
        .volume = volume,
        .mounts = *mounts,
        .generation = generation,
    };
    mounts->count = 0;
    lock_scope(&tree_cleaner->worker.lock);
    job_put(tree_cleaner, job);
}

void tree_cleaner_add_machine(struct tree_cleaner *tree_cleaner, struct machine *machine)
{
    struct tree_cleaner_job *job = xcalloc(1, sizeof(*job));

    job->machine = machine;
    lock_scope(&tree_cleaner->worker.lock);
    job_put(tree_cleaner, job);
}

void tree_cleaner_add_mounts(struct tree_cleaner *tree_cleaner, struct volume_mounts *mounts)
{
    struct tree_cleaner_job *job;
    bool is_full;

    if (mounts->count == 0)
        return;
    lock_take(&tree_cleaner->worker.lock);
    is_full = tree_cleaner->mounts_waiting >= MOUNTS_WAITING_MAX;
    if (!is_full) {
        job = xcalloc(1, sizeof(*job));
        job->mounts = *mounts;
        mounts->count = 0;
        tree_cleaner->mounts_waiting++;
        job_put(tree_cleaner, job);
    }
    lock_release(&tree_cleaner->worker.lock);
    if (is_full)
        volume_mounts_done(mounts);
}

/* Takes the next job of this sandbox that pins its volume out of the queue, or returns NULL. Makes
 * the others before it jobs of mounts alone. */
static struct tree_cleaner_job *job_take_of(struct tree_cleaner *tree_cleaner,
                                            struct sandbox *sandbox)
{
    struct tree_cleaner_job **slot = &tree_cleaner->first;
    lock_scope(&tree_cleaner->worker.lock);

    for (; *slot; slot = &(*slot)->next) {
        if ((*slot)->sandbox != sandbox)
            continue;
        if ((*slot)->volume)
            return job_take(tree_cleaner, slot);
        (*slot)->sandbox = NULL;
        tree_cleaner->mounts_waiting++;
        sandbox_unref(sandbox); /* not the last reference: the caller has one */
    }
    return NULL;
}

void tree_cleaner_cancel(struct sandbox *sandbox)
{
    struct tree_cleaner_job *job;

    while ((job = job_take_of(sandbox->host->tree_cleaner, sandbox))) {
        volume_mounts_done(&job->mounts);
        job_done(job);
    }
}

int tree_cleaner_start(struct tree_cleaner **ret, struct err *err)
{
    struct tree_cleaner *tree_cleaner = xcalloc(1, sizeof(*tree_cleaner));
    int r;

    tree_cleaner->last = &tree_cleaner->first;
    worker_init(&tree_cleaner->worker, LOCK_TREE_CLEANER);
    r = thread_start(&tree_cleaner->worker.thread, "holt-cleaner", tree_cleaner_main, tree_cleaner);
    if (r < 0) {
        free(tree_cleaner);
        return err_sys(err, r, "start the tree cleaner");
    }
    *ret = tree_cleaner;
    return 0;
}

bool tree_cleaner_stop(struct tree_cleaner *tree_cleaner, uint64_t deadline_ms)
{
    struct worker *worker = tree_cleaner ? &tree_cleaner->worker : NULL;
    bool has_ended;

    if (!worker)
        return true;
    lock_take(&worker->lock);
    worker->is_stopping = true;
    tree_cleaner->deadline_ms = deadline_ms;
    cond_broadcast(&worker->changed);
    while (!tree_cleaner->has_ended &&
           cond_wait_until(&worker->changed, &worker->lock, deadline_ms))
        ;
    has_ended = tree_cleaner->has_ended && !tree_cleaner->first;
    lock_release(&worker->lock);
    return has_ended;
}

void tree_cleaner_free(struct tree_cleaner *tree_cleaner)
{
    if (!tree_cleaner)
        return;
    worker_stop(&tree_cleaner->worker);
    worker_destroy(&tree_cleaner->worker);
    free(tree_cleaner);
}
