// SPDX-License-Identifier: Apache-2.0
/* One thread that checks the storage, the daemon's descriptors and what sandboxes use up every
 * health.interval, so that subscribers of events learn about their end before creates fail. */
#include "host/observe/storage_monitor.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/observe/event_internal.h"

struct storage_monitor {
    struct host *host;
    struct worker worker;
    enum storage_condition condition; /* of the last check; used by the thread only */
    bool is_low_on_descriptors;       /* the same */
    bool is_low[HOST_RESOURCES];      /* the same */
};

static void descriptors_check(struct storage_monitor *storage_monitor,
                              const struct descriptors *now)
{
    if (now->is_low == storage_monitor->is_low_on_descriptors)
        return;
    storage_monitor->is_low_on_descriptors = now->is_low;
    host_event(storage_monitor->host, now->is_low ? EVENT_RESOURCE_LOW : EVENT_RESOURCE_OK,
               json_pack("{s:s, s:i, s:i}", "resource", "file-descriptors", "used", (int)now->open,
                         "max", (int)now->max));
}

static void resource_check(struct storage_monitor *storage_monitor, bool *was_low,
                           const struct host_resource *now)
{
    if (now->is_low == *was_low)
        return;
    *was_low = now->is_low;
    host_event(storage_monitor->host, now->is_low ? EVENT_RESOURCE_LOW : EVENT_RESOURCE_OK,
               json_pack("{s:s, s:I, s:I}", "resource", now->name, "used", (json_int_t)now->used,
                         "max", (json_int_t)now->max));
}

static void storage_monitor_check(struct storage_monitor *storage_monitor)
{
    static const enum event_type types[] = {
        [STORAGE_OK] = EVENT_STORAGE_OK,
        [STORAGE_DEGRADED] = EVENT_STORAGE_DEGRADED,
        [STORAGE_FULL] = EVENT_STORAGE_FULL,
        [STORAGE_FAILED] = EVENT_STORAGE_FAILED,
    };
    struct host_health health;

    host_health(storage_monitor->host, &caller_root, &health);
    descriptors_check(storage_monitor, &health.descriptors);
    for (size_t i = 0; i < HOST_RESOURCES; i++)
        resource_check(storage_monitor, &storage_monitor->is_low[i], &health.resources[i]);
    if (health.storage_condition == storage_monitor->condition)
        return;
    storage_monitor->condition = health.storage_condition;
    host_event(storage_monitor->host, types[storage_monitor->condition],
               json_pack("{s:I, s:I, s:s, s:o}", "usedBytes", (json_int_t)health.storage_used,
                         "availableBytes", (json_int_t)health.storage_available, "state",
                         health.storage_state, "reason", json_text(health.errors)));
}

static void storage_monitor_main(void *argument)
{
    struct storage_monitor *storage_monitor = argument;

    do
        storage_monitor_check(storage_monitor);
    while (worker_rest(&storage_monitor->worker, storage_monitor->host->health_interval_ms, 0));
}

int storage_monitor_start(struct host *host, struct storage_monitor **ret, struct err *err)
{
    struct storage_monitor *storage_monitor = xcalloc(1, sizeof(*storage_monitor));
    int r;

    storage_monitor->host = host;
    worker_init(&storage_monitor->worker, LOCK_STORAGE_MONITOR);
    r = thread_start(&storage_monitor->worker.thread, "holt-storage", storage_monitor_main,
                     storage_monitor);
    if (r < 0) {
        free(storage_monitor);
        return err_sys(err, r, "start the storage monitor");
    }
    *ret = storage_monitor;
    return 0;
}

void storage_monitor_wake(struct storage_monitor *storage_monitor)
{
    worker_wake(&storage_monitor->worker);
}

void storage_monitor_stop(struct storage_monitor *storage_monitor)
{
    if (!storage_monitor)
        return;
    worker_stop(&storage_monitor->worker);
    worker_destroy(&storage_monitor->worker);
    free(storage_monitor);
}
