// SPDX-License-Identifier: Apache-2.0
/* One thread that looks at the storage every health.interval, so that whoever follows the events
 * hears of it before a create is refused. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/lock.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/observe/event_internal.h"

struct sentry {
    struct host *host;
    pthread_t thread;
    enum storage_condition condition; /* as it was last; the thread's */

    struct lock lock; /* over all below */
    pthread_cond_t changed;
    bool is_woken;
    bool is_stopping;
};

static void look(struct sentry *sentry)
{
    static const enum event_type types[] = {
        [STORAGE_OK] = EVENT_STORAGE_OK,
        [STORAGE_DEGRADED] = EVENT_STORAGE_DEGRADED,
        [STORAGE_FULL] = EVENT_STORAGE_FULL,
        [STORAGE_FAILED] = EVENT_STORAGE_FAILED,
    };
    struct host_health health;

    host_health(sentry->host, &health);
    if (health.storage_condition == sentry->condition)
        return;
    sentry->condition = health.storage_condition;
    host_event(sentry->host, types[sentry->condition],
               json_pack("{s:I, s:I, s:s, s:o}", "usedBytes", (json_int_t)health.storage_used,
                         "availableBytes", (json_int_t)health.storage_available, "state",
                         health.storage_state, "reason", json_text(health.errors)));
}

static void *sentry_main(void *argument)
{
    struct sentry *sentry = argument;

    lock_take(&sentry->lock);
    while (!sentry->is_stopping) {
        uint64_t until_ms;
        struct timespec until;
        int r = 0;

        sentry->is_woken = false;
        lock_release(&sentry->lock);
        look(sentry);
        until_ms = clock_ms() + sentry->host->health_interval_ms;
        until = (struct timespec){ .tv_sec = (time_t)(until_ms / 1000),
                                   .tv_nsec = (long)(until_ms % 1000) * 1000000 };
        lock_take(&sentry->lock);
        while (r == 0 && !sentry->is_woken && !sentry->is_stopping)
            r = pthread_cond_timedwait(&sentry->changed, &sentry->lock.mutex, &until);
    }
    lock_release(&sentry->lock);
    return NULL;
}

int sentry_start(struct host *host, struct sentry **ret, struct err *err)
{
    struct sentry *sentry = xcalloc(1, sizeof(*sentry));
    pthread_condattr_t monotonic;
    int r;

    sentry->host = host;
    lock_init(&sentry->lock, LOCK_STORAGE_MONITOR);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&sentry->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    r = -pthread_create(&sentry->thread, NULL, sentry_main, sentry);
    if (r < 0) {
        free(sentry);
        return err_sys(err, r, "start the sentry");
    }
    *ret = sentry;
    return 0;
}

static void signal_it(struct sentry *sentry, bool is_stopping)
{
    lock_take(&sentry->lock);
    sentry->is_woken = true;
    sentry->is_stopping = is_stopping;
    (void)pthread_cond_signal(&sentry->changed);
    lock_release(&sentry->lock);
}

void sentry_wake(struct sentry *sentry)
{
    signal_it(sentry, false);
}

void sentry_stop(struct sentry *sentry)
{
    if (!sentry)
        return;
    signal_it(sentry, true);
    (void)pthread_join(sentry->thread, NULL);
    (void)pthread_cond_destroy(&sentry->changed);
    lock_destroy(&sentry->lock);
    free(sentry);
}
