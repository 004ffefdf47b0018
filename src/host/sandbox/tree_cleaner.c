// SPDX-License-Identifier: Apache-2.0
/* Removes old trees behind sandboxes that have moved on: closing the last descriptor of an overlay
 * writes a whole filesystem's changes out, and deleting takes its time too. */
#include <stdlib.h>

#include "base/lock.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "base/xalloc.h"
#include "host/sandbox/sandbox_internal.h"
#include "store/volume/volume.h"

struct job {
    struct job *next;
    struct sandbox *sandbox; /* referenced, its volume pinned */
    struct volume *volume;
    struct volume_mounts mounts;
    uint32_t generation;
};

struct janitor {
    pthread_t thread;
    struct lock lock; /* over all below */
    pthread_cond_t changed;
    struct job *first, **last;
    bool is_stopping;
};

/* A tree that cannot be removed now stays until the sandbox is recovered or destroyed. */
static void run(struct job *job)
{
    volume_mounts_done(&job->mounts);
    fault_point("janitor.closed");
    (void)volume_drop(job->volume, job->generation);
    fault_point("janitor.dropped");
    sandbox_unpin(job->sandbox);
    sandbox_unref(job->sandbox);
    free(job);
}

static void *janitor_main(void *argument)
{
    struct janitor *janitor = argument;
    struct job *job;

    lock_take(&janitor->lock);
    while (janitor->first || !janitor->is_stopping) {
        job = janitor->first;
        if (!job) {
            (void)pthread_cond_wait(&janitor->changed, &janitor->lock.mutex);
            continue;
        }
        janitor->first = job->next;
        if (!janitor->first)
            janitor->last = &janitor->first;
        lock_release(&janitor->lock);
        run(job);
        lock_take(&janitor->lock);
    }
    lock_release(&janitor->lock);
    return NULL;
}

void janitor_add(struct sandbox *sandbox, struct volume_mounts *mounts, uint32_t generation)
{
    struct janitor *janitor = sandbox->host->janitor;
    struct volume *volume = sandbox_pin(sandbox);
    struct job *job;

    if (!volume) { /* about to be destroyed, and then everything goes */
        volume_mounts_done(mounts);
        return;
    }
    job = xcalloc(1, sizeof(*job));
    *job = (struct job){
        .sandbox = sandbox_ref(sandbox),
        .volume = volume,
        .mounts = *mounts,
        .generation = generation,
    };
    mounts->count = 0;
    lock_take(&janitor->lock);
    *janitor->last = job;
    janitor->last = &job->next;
    (void)pthread_cond_broadcast(&janitor->changed);
    lock_release(&janitor->lock);
}

int janitor_start(struct janitor **ret, struct err *err)
{
    struct janitor *janitor = xcalloc(1, sizeof(*janitor));
    int r;

    janitor->last = &janitor->first;
    lock_init(&janitor->lock, LOCK_TREE_CLEANER);
    (void)pthread_cond_init(&janitor->changed, NULL);
    r = -pthread_create(&janitor->thread, NULL, janitor_main, janitor);
    if (r < 0) {
        free(janitor);
        return err_sys(err, r, "start the janitor");
    }
    *ret = janitor;
    return 0;
}

void janitor_stop(struct janitor *janitor)
{
    if (!janitor)
        return;
    lock_take(&janitor->lock);
    janitor->is_stopping = true;
    (void)pthread_cond_broadcast(&janitor->changed);
    lock_release(&janitor->lock);
    (void)pthread_join(janitor->thread, NULL);
    (void)pthread_cond_destroy(&janitor->changed);
    lock_destroy(&janitor->lock);
    free(janitor);
}
