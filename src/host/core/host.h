/* The host: everything that lives as long as the daemon. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/core/descriptors.h"
#include "host/observe/audit.h"

struct caller;
struct config;
struct host;
struct llm;
struct host_extension;
struct secrets;
struct store;

enum health_status { HEALTH_OK, HEALTH_DEGRADED, HEALTH_UNHEALTHY };
enum storage_condition { STORAGE_OK, STORAGE_DEGRADED, STORAGE_FULL, STORAGE_FAILED };

/* What sandboxes use up together: memory, processes; what is left of the disk of the state
 * directory and of its inodes; and what the whole machine has: memory, memory of sockets, open
 * files. */
enum { HOST_RESOURCES = 7 };

struct host_resource {
    const char *name; /* in events and metrics */
    uint64_t used, max;
    bool is_low; /* less than an eighth is left, or too little for one more sandbox */
};

struct host_health {
    uint32_t sandboxes;
    uint32_t processes; /* running, in sandboxes and throw-aways */
    uint32_t tools;     /* calls in progress */
    uint32_t pool_ready;
    uint32_t pool_size;
    uint64_t uptime_ms;
    const char *runtime;
    const char *storage_backend;
    enum storage_condition storage_condition;
    char storage_state[16]; /* ONLINE, DEGRADED, ...: see store_state */
    uint64_t storage_used;  /* bytes */
    uint64_t storage_available;
    struct descriptors descriptors;
    struct host_resource resources[HOST_RESOURCES];
    enum health_status status;
    char errors[512]; /* reasons for a status other than OK, one per line */
};

/* Opens the store and the databases, probes the kernel, recovers the sandboxes of an earlier daemon
 * process, removes its other cgroups and volumes, and starts all threads. extension may be NULL.
 */
int host_open(const struct config *config, const struct host_extension *extension,
              struct host **ret, struct err *err);

/* Returns 0, or ERR_BUSY with the cause ShuttingDown once host_drain was called. */
int host_is_open(struct host *host, struct err *err);

/* With stop_all: makes new tool calls fail from now on, and returns how many milliseconds to wait
 * for those that run. Otherwise returns 0. */
uint64_t host_refuse_tools(struct host *host);

/* Returns whether a tool call runs. */
bool host_has_tools(const struct host *host);

/* Makes new operations fail from now on. */
void host_drain(struct host *host);

/* Destroys all throw-away machines, releases the sandboxes (or stops them, as configured) and stops
 * every thread. Accepts NULL. Returns false if a sandbox or a removal of files did not end in time:
 * then threads still run, the host is not freed, and the caller should exit at once. */
bool host_close(struct host *host);

struct store *host_store(struct host *host);

/* Returns the store of secrets, which host_close closes. */
struct secrets *host_secrets(struct host *host);

/* Returns the models of the host, see host/llm/llm.h. */
struct llm *host_llm(struct host *host);

/* Returns a descriptor of the state directory, which host_close closes. */
int host_state_fd(const struct host *host);

/* Returns whether a pause of an E2B client is a deep one, see e2b.pause in holt.conf(5). */
bool host_has_deep_e2b_pause(const struct host *host);

/* What the configuration says about tool calls. */
struct host_tool_settings {
    uint64_t timeout_ms;    /* 0: none */
    uint32_t output_tokens; /* at most TOOL_OUTPUT_TOKENS_MAX */
    bool takes_snapshots;
    uint64_t memory_bytes; /* of a process; 0: no limit */
    uint32_t cpus_milli;   /* of a process; 0: no limit */
    const char *bash_tier; /* the weakest runtime of bash */
};
void host_get_tool_settings(const struct host *host, struct host_tool_settings *ret);

/* Records what a template belongs to, in words (NULL: to nothing): lists leave such templates out
 * unless asked for all. */
int host_set_template_owner(struct host *host, const char *name, const char *owner,
                            struct err *err);

/* Returns what a template belongs to, for the caller to free; NULL: nothing. */
int host_get_template_owner(struct host *host, const char *name, char **ret, struct err *err);

bool host_is_default_template(const struct host *host, const char *name);

/* Ends the machines in the warm pool that use a template, which is no sandbox. */
void host_release_template(struct host *host, const char *name);

/* Waits until all ended machines have released their resources, for ten seconds at most. */
void host_wait_reaped(struct host *host);

/* Removes a template, by its name in the store, that no sandbox uses. Machines in the warm pool
 * that use it are ended. */
int host_remove_template(struct host *host, const char *name, struct err *err);

/* Reads this host's audit log, as audit_read does. */
int host_read_audit(struct host *host, const char *sandbox, audit_fn each, void *context,
                    uint64_t *ret_lines, struct err *err);

/* Fills in the health of the host. A caller that is no admin of the host learns the status and its
 * own numbers: how full or busy the host is depends on the other owners, and stays 0. */
void host_health(struct host *host, const struct caller *caller, struct host_health *ret);

/* The features and limits of this host for an owner, with its storage and its kernel. */
struct host_capabilities {
    bool snapshots, rollback, fork, quota;
    bool atomic_snapshots; /* taken without freezing processes */
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
void host_capabilities(struct host *host, const char *owner, struct host_capabilities *ret);

/* Describes the index-th known runtime; `result` is 0 when it works here, otherwise `problem` says
 * why not. Returns false behind the last one. */
struct host_runtime {
    const char *name;
    unsigned strength; /* see runtime_ops */
    int result;
    struct err problem;
};
bool host_runtime_at(struct host *host, size_t index, struct host_runtime *ret);

/* Applies the settings that can change while the daemon runs: all of them, or none and an error. */
int host_reload(struct host *host, const struct config *config, struct err *err);

/* Checks that each central thread responds within this many milliseconds. Returns 0, or an error
 * that names the thread that does not. */
int host_check_threads(struct host *host, unsigned patience_ms, struct err *err);

/* Checks that netlink sockets of sandboxes are limited here. Forks, so it is for a process that has
 * one thread. */
int host_check_netlink(struct err *err);
