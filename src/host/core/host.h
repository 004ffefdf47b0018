/* The heart of the daemon: everything that lives as long as it does. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/observe/audit.h"

struct config;
struct host;
struct store;

enum health_status { HEALTH_OK, HEALTH_DEGRADED, HEALTH_UNHEALTHY };
enum storage_condition { STORAGE_OK, STORAGE_DEGRADED, STORAGE_FULL, STORAGE_FAILED };

struct host_health {
    uint32_t sandboxes;
    uint32_t processes; /* that run in sandboxes, throw-away ones too */
    uint32_t tools;     /* calls that are going on */
    uint32_t pool_ready;
    uint32_t pool_size;
    uint64_t uptime_ms;
    const char *runtime;
    const char *storage_backend;
    enum storage_condition storage_condition;
    char storage_state[16]; /* ONLINE, DEGRADED, ...: see store_state */
    uint64_t storage_used;  /* bytes */
    uint64_t storage_available;
    enum health_status status;
    char errors[512]; /* why it is not ok: lines for people */
};

/* Probes the kernel, removes what an earlier life of this state directory left behind (cgroups,
 * volumes), opens the store, starts the reactor, the reaper and the warm pool. */
int host_open(const struct config *config, struct host **ret, struct err *err);

/* Whether it is not being closed: 0, or ShuttingDown. */
int host_is_open(struct host *host, struct err *err);

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

/* What this host, with its storage and its kernel, can do. */
struct host_capabilities {
    bool snapshots, rollback, fork, quota;
    bool atomic_snapshots; /* of one moment; otherwise processes stand still meanwhile */
    bool pause, deep_pause, launch, streaming_progress, tier_routing;
    bool memory_limit, cpu_limit, pids_limit;
    uint32_t sandboxes_max;
    uint64_t sandbox_duration_max_ms; /* 0: no limit */
    uint32_t snapshots_max, forks_max;
    uint64_t default_quota;
    const char *storage_backend;
    const char *default_runtime;
    const char *limits_from; /* "cgroup v2", ... */
};
void host_capabilities(struct host *host, struct host_capabilities *ret);

/* The runtimes that Holt knows, one after the other: the index-th, and whether it works here (0) or
 * why not. false: there is none any more. */
struct host_runtime {
    const char *name;
    int result;
    struct err problem;
};
bool host_runtime_at(struct host *host, size_t index, struct host_runtime *ret);

/* Takes what may change while it runs from a new configuration: all of it, or an error. */
int host_reload(struct host *host, const struct config *config, struct err *err);

/* Whether the threads that everything goes through answer, each within so many milliseconds: 0, or
 * an error that names the one that does not. */
int host_check_threads(struct host *host, unsigned patience_ms, struct err *err);
