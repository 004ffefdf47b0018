// SPDX-License-Identifier: Apache-2.0
/* Removes the old trees of rollbacks in the background: closing the last descriptor of an
 * overlay syncs a whole filesystem, and deleting a tree is slow too. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/lock.h"
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
    pthread_t thread;
    struct lock lock; /* protects everything below */
    struct cond changed;
    struct tree_cleaner_job *first, **last;
    bool is_stopping;
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

static void *tree_cleaner_main(void *argument)
{
    struct tree_cleaner *tree_cleaner = argument;
    struct tree_cleaner_job *job;

    lock_take(&tree_cleaner->lock);
    while (tree_cleaner->first || !tree_cleaner->is_stopping) {
        job = tree_cleaner->first;
        if (!job) {
            cond_wait(&tree_cleaner->changed, &tree_cleaner->lock);
            continue;
        }
        tree_cleaner->first = job->next;
        if (!tree_cleaner->first)
            tree_cleaner->last = &tree_cleaner->first;
        lock_release(&tree_cleaner->lock);
        tree_cleaner_run(job);
        lock_take(&tree_cleaner->lock);
    }
    lock_release(&tree_cleaner->lock);
    return NULL;
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
    lock_take(&tree_cleaner->lock);
    *tree_cleaner->last = job;
    tree_cleaner->last = &job->next;
    cond_broadcast(&tree_cleaner->changed);
    lock_release(&tree_cleaner->lock);
}

int tree_cleaner_start(struct tree_cleaner **ret, struct err *err)
{
    struct tree_cleaner *tree_cleaner = xcalloc(1, sizeof(*tree_cleaner));
    int r;

    tree_cleaner->last = &tree_cleaner->first;
    lock_init(&tree_cleaner->lock, LOCK_TREE_CLEANER);
    cond_init(&tree_cleaner->changed);
    r = -pthread_create(&tree_cleaner->thread, NULL, tree_cleaner_main, tree_cleaner);
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
    lock_take(&tree_cleaner->lock);
    tree_cleaner->is_stopping = true;
    cond_broadcast(&tree_cleaner->changed);
    lock_release(&tree_cleaner->lock);
    (void)pthread_join(tree_cleaner->thread, NULL);
    cond_destroy(&tree_cleaner->changed);
    lock_destroy(&tree_cleaner->lock);
    free(tree_cleaner);
}
