/* The heart of the daemon: everything that lives as long as it does. */
#pragma once

#include <stdint.h>

#include "host/audit.h"

struct config;
struct err;
struct host;
struct store;

enum health_status { HEALTH_OK, HEALTH_DEGRADED, HEALTH_UNHEALTHY };

struct host_health {
    uint32_t sandboxes;
    uint32_t pool_ready;
    uint64_t uptime_ms;
    const char *runtime;
    const char *storage_backend;
    uint64_t storage_used; /* bytes */
    uint64_t storage_available;
    enum health_status status;
    char errors[512]; /* why it is not ok: lines for people */
};

/* Probes the kernel, removes what an earlier life of this state directory left behind (cgroups,
 * volumes), opens the store, starts the reactor, the reaper and the warm pool. */
int host_open(const struct config *config, struct host **ret, struct err *err);

/* Nothing new is begun from now on. */
void host_drain(struct host *host);

/* Destroys all throw-away sandboxes, leaves the others running (or stops them, as configured) and
 * stops every thread. Accepts NULL. */
void host_close(struct host *host);

struct store *host_store(struct host *host);

/* Removes a template that no sandbox uses; those in the warm pool do not count. */
int host_remove_template(struct host *host, const char *name, struct err *err);

/* As audit_read, of this host's record. */
int host_read_audit(struct host *host, const char *sandbox, audit_fn each, void *context,
                    uint64_t *ret_lines, struct err *err);

void host_health(struct host *host, struct host_health *ret);
