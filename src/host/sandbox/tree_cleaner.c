// SPDX-License-Identifier: Apache-2.0
/* Removes the old trees of rollbacks in the background: closing the last descriptor of an
 * overlay syncs a whole filesystem, and deleting a tree is slow too. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/sandbox/sandbox_internal.h"
#include "store/volume/volume.h"

struct tree_cleaner_job {
    struct tree_cleaner_job *next;
    struct sandbox *sandbox; /* referenced, its volume pinned */
    struct volume *volume;
    struct volume_mounts mounts;
    uint32_t generation;
};

struct tree_cleaner {
    struct worker worker;
    struct tree_cleaner_job *first, **last; /* under its lock */
};

/* A tree that cannot be removed now remains until the sandbox is recovered or destroyed. */
static void tree_cleaner_run(struct tree_cleaner_job *job)
{
    volume_mounts_done(&job->mounts);
    fault_point("tree_cleaner.closed");
    (void)volume_drop(job->volume, job->generation);
    fault_point("tree_cleaner.dropped");
    sandbox_unpin(job->sandbox);
    sandbox_unref(job->sandbox);
    free(job);
}

static void tree_cleaner_main(void *argument)
{
    struct tree_cleaner *tree_cleaner = argument;
    struct worker *worker = &tree_cleaner->worker;
    struct tree_cleaner_job *job;
    lock_scope(&worker->lock);

    while (tree_cleaner->first || !worker->is_stopping) {
        job = tree_cleaner->first;
        if (!job) {
            cond_wait(&worker->changed, &worker->lock);
            continue;
        }
        tree_cleaner->first = job->next;
        if (!tree_cleaner->first)
            tree_cleaner->last = &tree_cleaner->first;
        lock_release(&worker->lock);
        tree_cleaner_run(job);
        lock_take(&worker->lock);
    }
}

void tree_cleaner_add(struct sandbox *sandbox, struct volume_mounts *mounts, uint32_t generation)
{
    struct tree_cleaner *tree_cleaner = sandbox->host->tree_cleaner;
    struct volume *volume = sandbox_pin(sandbox);
    struct tree_cleaner_job *job;

    if (!volume) { /* being destroyed, which removes all trees */
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
    *tree_cleaner->last = job;
    tree_cleaner->last = &job->next;
    cond_signal(&tree_cleaner->worker.changed);
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

void tree_cleaner_stop(struct tree_cleaner *tree_cleaner)
{
    if (!tree_cleaner)
        return;
    worker_stop(&tree_cleaner->worker);
    worker_destroy(&tree_cleaner->worker);
    free(tree_cleaner);
}
