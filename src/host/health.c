// SPDX-License-Identifier: Apache-2.0
/* How the host is doing, and whether it has room for more. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "host/audit.h"
#include "host/sandbox_internal.h"
#include "store/store.h"

/* Per cent of the storage that is in use. */
static unsigned fullness(const struct store_space *space)
{
    uint64_t total = space->used + space->available;

    return total == 0 ? 100 : (unsigned)((double)space->used * 100 / (double)total);
}

int host_check_space(struct host *host, struct err *err)
{
    struct store_space space;
    int r = store_space(host->store, &space, err);

    if (r < 0)
        return r;
    if (fullness(&space) < host->storage_full)
        return 0;
    return err_refuse(err, CAUSE_POOL_FULL,
                      "the storage is %u %% full (%" PRIu64 " MiB are left): remove sandboxes or "
                      "snapshots, or give it more room",
                      fullness(&space), space.available >> 20);
}

static void worsen(struct host_health *health, enum health_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void worsen(struct host_health *health, enum health_status status, const char *format, ...)
{
    size_t used = strlen(health->errors);
    va_list args;

    if (status > health->status)
        health->status = status;
    if (used > 0 && used + 1 < sizeof(health->errors))
        health->errors[used++] = '\n';
    va_start(args, format);
    (void)vsnprintf(health->errors + used, sizeof(health->errors) - used, format, args);
    va_end(args);
}

static void look_at_storage(struct host *host, struct host_health *ret)
{
    struct store_space space = { 0 };
    struct err err = { 0 };

    ret->storage_backend = store_backend(host->store);
    if (store_space(host->store, &space, &err) < 0) {
        worsen(ret, HEALTH_UNHEALTHY, "%s", err.msg);
        return;
    }
    ret->storage_used = space.used;
    ret->storage_available = space.available;
    if (fullness(&space) >= host->storage_full)
        worsen(ret, HEALTH_UNHEALTHY, "the storage is %u %% full: no sandbox can be created",
               fullness(&space));
    else if (fullness(&space) >= host->storage_warn)
        worsen(ret, HEALTH_DEGRADED, "the storage is %u %% full", fullness(&space));
}

void host_health(struct host *host, struct host_health *ret)
{
    *ret = (struct host_health){
        .pool_ready = pool_ready(host->pool),
        .uptime_ms = clock_ms() - host->started_ms,
        .runtime = host->default_runtime->name,
    };
    look_at_storage(host, ret);
    (void)pthread_mutex_lock(&host->lock);
    ret->sandboxes = host->active;
    if (host->audit_failures > 0)
        worsen(ret, HEALTH_DEGRADED, "%u events are missing from the audit log: %.160s",
               host->audit_failures, host->audit_error);
    (void)pthread_mutex_unlock(&host->lock);
}

void host_audit(struct host *host, const char *event, const char *sandbox, json_t *details)
{
    struct err err = { 0 };

    if (audit_add(host->audit, event, sandbox, details, &err) == 0)
        return;
    (void)pthread_mutex_lock(&host->lock);
    host->audit_failures++;
    (void)snprintf(host->audit_error, sizeof(host->audit_error), "%s", err.msg);
    (void)pthread_mutex_unlock(&host->lock);
}

int host_read_audit(struct host *host, const char *sandbox, audit_fn each, void *context,
                    uint64_t *ret_lines, struct err *err)
{
    return audit_read(host->state_fd, sandbox, each, context, ret_lines, err);
}
