// SPDX-License-Identifier: Apache-2.0
/* One thread that looks at the storage every health.interval, so that whoever follows the events
 * hears of it before a create is refused. */
#include "host/observe/storage_monitor.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/observe/event_internal.h"

struct storage_monitor {
    struct host *host;
    pthread_t thread;
    enum storage_condition condition; /* as it was last; the thread's */

    struct lock lock; /* over all below */
    struct cond changed;
    bool is_woken;
    bool is_stopping;
};

static void look(struct storage_monitor *storage_monitor)
{
    static const enum event_type types[] = {
        [STORAGE_OK] = EVENT_STORAGE_OK,
        [STORAGE_DEGRADED] = EVENT_STORAGE_DEGRADED,
        [STORAGE_FULL] = EVENT_STORAGE_FULL,
        [STORAGE_FAILED] = EVENT_STORAGE_FAILED,
    };
    struct host_health health;

    host_health(storage_monitor->host, &health);
    if (health.storage_condition == storage_monitor->condition)
        return;
    storage_monitor->condition = health.storage_condition;
    host_event(storage_monitor->host, types[storage_monitor->condition],
               json_pack("{s:I, s:I, s:s, s:o}", "usedBytes", (json_int_t)health.storage_used,
                         "availableBytes", (json_int_t)health.storage_available, "state",
                         health.storage_state, "reason", json_text(health.errors)));
}

static void *storage_monitor_main(void *argument)
{
    struct storage_monitor *storage_monitor = argument;

    lock_take(&storage_monitor->lock);
    while (!storage_monitor->is_stopping) {
        uint64_t until_ms;
        bool is_early = true;

        storage_monitor->is_woken = false;
        lock_release(&storage_monitor->lock);
        look(storage_monitor);
        until_ms = clock_after_ms(storage_monitor->host->health_interval_ms);
        lock_take(&storage_monitor->lock);
        while (is_early && !storage_monitor->is_woken && !storage_monitor->is_stopping)
            is_early = cond_wait_until(&storage_monitor->changed, &storage_monitor->lock, until_ms);
    }
    lock_release(&storage_monitor->lock);
    return NULL;
}

int storage_monitor_start(struct host *host, struct storage_monitor **ret, struct err *err)
{
    struct storage_monitor *storage_monitor = xcalloc(1, sizeof(*storage_monitor));
    int r;

    storage_monitor->host = host;
    lock_init(&storage_monitor->lock, LOCK_STORAGE_MONITOR);
    cond_init(&storage_monitor->changed);
    r = -pthread_create(&storage_monitor->thread, NULL, storage_monitor_main, storage_monitor);
    if (r < 0) {
        free(storage_monitor);
        return err_sys(err, r, "start the sentry");
    }
    *ret = storage_monitor;
    return 0;
}

static void signal_it(struct storage_monitor *storage_monitor, bool is_stopping)
{
    lock_take(&storage_monitor->lock);
    storage_monitor->is_woken = true;
    storage_monitor->is_stopping = is_stopping;
    cond_signal(&storage_monitor->changed);
    lock_release(&storage_monitor->lock);
}

void storage_monitor_wake(struct storage_monitor *storage_monitor)
{
    signal_it(storage_monitor, false);
}

void storage_monitor_stop(struct storage_monitor *storage_monitor)
{
    if (!storage_monitor)
        return;
    signal_it(storage_monitor, true);
    (void)pthread_join(storage_monitor->thread, NULL);
    cond_destroy(&storage_monitor->changed);
    lock_destroy(&storage_monitor->lock);
    free(storage_monitor);
}
