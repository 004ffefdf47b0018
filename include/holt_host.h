/* The daemon, its ports and its tokens; holt.h includes this file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holt.h"

#ifdef __cplusplus
extern "C" {
#endif

struct holt_health {
    const char *status;  /* "ok", "degraded" or "unhealthy" */
    const char *version; /* of the daemon */
    const char *runtime;
    uint64_t uptime_ms;
    uint32_t sandboxes;
    uint32_t pool_ready; /* warm sandboxes in the pool */
    const char *storage; /* "btrfs", "dir" or "zfs" */
    uint64_t storage_used_bytes;
    uint64_t storage_available_bytes;
    const char *storage_state; /* "ONLINE", "DEGRADED", or a state in which it is not usable */
    const char *const *errors; /* why the status is not "ok"; ends with NULL */
    uint32_t processes;
    uint32_t pool_size;          /* target size of the pool */
    uint64_t storage_size_bytes; /* used and available together */
    uint32_t storage_used_percent;
    uint32_t tools;              /* tool calls in progress */
    const char *state_directory; /* of the daemon; "": not reached over a unix socket */
};

HOLT_API int holt_health(struct holt *holt, int64_t deadline, struct holt_health **ret,
                         struct holt_error *error);

struct holt_runtime {
    const char *name;
    bool works;          /* can be used on this host */
    const char *problem; /* why not */
    bool is_allowed;     /* the host and the ceilings of the caller's owner let it be used */
    uint32_t strength;   /* of two runtimes, the one with the higher number withstands more */
};

/* Features of a host and its sandboxes. Operations that need a missing feature fail. */
struct holt_capabilities {
    bool snapshots;
    bool rollback;
    bool fork;
    bool atomic_snapshots; /* of one point in time; else processes are frozen meanwhile */
    bool quota;
    bool pause;
    bool deep_pause;
    bool launch;
    bool streaming_progress;
    bool tier_routing;
    bool memory_limit;
    bool cpu_limit;
    bool pids_limit;
    uint32_t max_sandboxes;
    uint64_t max_sandbox_duration_ms; /* 0: no limit, here and below */
    uint32_t max_snapshots;
    uint32_t max_forks;
    uint64_t default_quota_bytes;
    uint32_t max_message_bytes;
    const char *storage;
    const char *default_runtime;
    size_t runtime_count;
    const struct holt_runtime *const *runtimes;
    const char *limits_from; /* "cgroup v2" or "cgroup v1 (hybrid)" */
};

HOLT_API int holt_capabilities(struct holt *holt, int64_t deadline, struct holt_capabilities **ret,
                               struct holt_error *error);

/* The resource usage of one sandbox. */
struct holt_stats {
    const char *sandbox_id;
    const char *sandbox_name;
    const char *state;
    uint64_t age_ms;
    uint64_t cpu_us; /* since the start of its machine */
    uint32_t cpu_limit_millis;
    uint64_t memory_bytes; /* without cache_bytes */
    uint64_t cache_bytes;
    uint64_t memory_limit_bytes;
    uint32_t pids;
    uint32_t pids_limit;
    uint32_t processes; /* started by clients */
    uint64_t space_used_bytes;
    uint64_t quota_bytes;
    bool has_cpu_millis; /* from holt_stats_watch, except in the first report */
    uint32_t cpu_millis; /* thousandths of a CPU since the previous report */
    const char *owner;
};

struct holt_stats_list {
    size_t count;
    const struct holt_stats *const *items;
};

/* Returns the usage of the given sandboxes (ends with NULL), or of all if sandboxes is NULL. */
HOLT_API int holt_stats(struct holt *holt, const char *const *sandboxes, int64_t deadline,
                        struct holt_stats_list **ret, struct holt_error *error);

/* Receives a report, valid during the call. A nonzero return value ends the watch, and the call
 * fails with "canceled". */
typedef int (*holt_stats_fn)(void *context, const struct holt_stats_list *list);

struct holt_stats_options {
    size_t size;
    const char *const *sandboxes; /* as of holt_stats */
    uint64_t interval_ms;         /* between reports; 0: 1 s */
    holt_stats_fn on_stats;
    void *context;
};

/* Reports the usage of sandboxes until the deadline, the end of the last given sandbox, or a
 * nonzero return of on_stats. options may be NULL. */
HOLT_API int holt_stats_watch(struct holt *holt, const struct holt_stats_options *options,
                              int64_t deadline, struct holt_error *error);

struct holt_event {
    uint64_t seq; /* one more than that of the previous event */
    int64_t time_ms;
    const char *type; /* docs/events.md lists the types; "": only lost is valid */
    const char *sandbox_id;
    const char *sandbox_name;
    const char *fields; /* details, a JSON object */
    uint64_t lost;      /* number of lost events before this one */
};

/* Receives one event, valid during the call. A nonzero return value ends the watch, and the call
 * fails with "canceled". */
typedef int (*holt_event_fn)(void *context, const struct holt_event *event);

struct holt_event_options {
    size_t size;
    bool has_since; /* else only new events */
    uint64_t since; /* start after this number; 0: with the oldest kept event */
    const char *sandbox;
    const char *const *types; /* glob patterns such as "sandbox.*", ends with NULL */
    bool ends;                /* end after the events so far */
    holt_event_fn on_event;
    void *context;
    int64_t since_ms; /* start with the first event of this time or later; 0: not used */
};

/* Reports events until the deadline, the end of the daemon, or a nonzero return of on_event. */
HOLT_API int holt_event_watch(struct holt *holt, const struct holt_event_options *options,
                              int64_t deadline, struct holt_error *error);

/* Receives one line of the audit record, a JSON object, valid during the call. A nonzero return
 * value ends the call, which fails with "canceled". */
typedef int (*holt_audit_fn)(void *context, const char *line);

struct holt_audit_options {
    size_t size;
    const char *sandbox; /* only lines about this one; NULL: all */
    bool only_verifies;  /* report no lines */
    holt_audit_fn on_line;
    void *context;
};

struct holt_audit_verdict {
    bool is_intact; /* every line of the record matches the hash in the next */
    uint64_t lines; /* number of lines read */
    const char *problem;
};

/* Reports the lines of the audit record and verifies its hash chain. options and ret may be NULL.
 */
HOLT_API int holt_audit(struct holt *holt, const struct holt_audit_options *options,
                        int64_t deadline, struct holt_audit_verdict **ret,
                        struct holt_error *error);

/* --- owners ---------------------------------------------------------------------------------- */

struct holt_owner_ceiling {
    const char *name;   /* "sandboxes", "memory", "cpus", "disk", "pids", "ttl", ... */
    const char *value;  /* as in holt.conf: "20", "8G", "1.500", "24h"; "none" or "all": none */
    const char *source; /* "command", "holt.conf", "default" or "none" */
};

struct holt_owner {
    const char *name;
    uint64_t sandboxes; /* including throw-away ones */
    uint64_t memory_bytes;
    uint64_t cpu_millis;
    uint64_t pids;
    uint64_t disk_bytes;
    const struct holt_owner_ceiling *const *ceilings;
    size_t ceiling_count;
};

struct holt_owner_list {
    size_t count;
    const struct holt_owner *const *items;
};

struct holt_owner_setting {
    const char *name;
    const char *value; /* NULL: the ceiling is that of holt.conf again */
};

/* A NULL owner is the caller's. */
HOLT_API int holt_owner_get(struct holt *holt, const char *owner, int64_t deadline,
                            struct holt_owner **ret, struct holt_error *error);
HOLT_API int holt_owner_list(struct holt *holt, int64_t deadline, struct holt_owner_list **ret,
                             struct holt_error *error);

struct holt_owner_options {
    size_t size;
    const struct holt_owner_setting *settings;
    size_t count; /* at most 16 */
};

/* Sets ceilings, all or none. */
HOLT_API int holt_owner_set(struct holt *holt, const char *owner,
                            const struct holt_owner_options *options, int64_t deadline,
                            struct holt_owner **ret, struct holt_error *error);

/* Removes the ceilings that were set; holt.conf applies again. */
HOLT_API int holt_owner_remove(struct holt *holt, const char *owner, int64_t deadline,
                               struct holt_error *error);

/* A token for clients over TCP. */
struct holt_token {
    const char *id;
    const char *label;
    bool is_read_only;
    int64_t created_ms;
    int64_t expires_ms;
    int64_t last_used_ms;
    const char *secret; /* only from holt_token_create */
    const char *owner;
    const char *role; /* "admin", "user" or "read-only" */
    const struct holt_label *scope;
    size_t scope_count;
};

struct holt_token_list {
    size_t count;
    const struct holt_token *const *items;
};

struct holt_token_options {
    size_t size;
    const char *label;
    bool is_read_only;
    uint64_t ttl_ms;      /* 0: unlimited */
    const char *ports_of; /* the secret only opens the ports of this sandbox; NULL: all calls */
    const char *owner;    /* NULL: the caller's; another one needs the role admin */
    const char *role;     /* NULL: the caller's for its own owner, "user" for another */

    /* "key=value", ends with NULL: only objects with these labels exist for the token, and what it
     * creates gets them. NULL: no limit but the caller's own. */
    const char *const *scope;
};

/* options may be NULL. */
HOLT_API int holt_token_create(struct holt *holt, const struct holt_token_options *options,
                               int64_t deadline, struct holt_token **ret, struct holt_error *error);
HOLT_API int holt_token_list(struct holt *holt, int64_t deadline, struct holt_token_list **ret,
                             struct holt_error *error);
HOLT_API int holt_token_remove(struct holt *holt, const char *id, int64_t deadline,
                               struct holt_error *error);

/* --- logins to the web console ---------------------------------------------------------------- */

/* A code that logs one browser in, once, within a minute. */
struct holt_console_login {
    const char *code;
    int64_t expires_ms;
    const char *url; /* of the console with the code; "": the daemon does not listen on TCP */
};

/* Creates a login on behalf of the caller. */
HOLT_API int holt_console_login(struct holt *holt, int64_t deadline,
                                struct holt_console_login **ret, struct holt_error *error);

struct holt_console_session {
    const char *id;
    const char *owner;
    const char *role;     /* "admin", "user" or "read-only" */
    const char *token_id; /* that made it; "": the unix socket or the main token */
    const char *address;  /* of the browser */
    const char *user_agent;
    int64_t created_ms;
    int64_t expires_ms;
    int64_t last_used_ms;
    const char *sandbox_id; /* whose port a preview opens; "": a login */
    uint32_t port;
};

struct holt_console_session_list {
    size_t count;
    const struct holt_console_session *const *items;
};

HOLT_API int holt_console_session_list(struct holt *holt, int64_t deadline,
                                       struct holt_console_session_list **ret,
                                       struct holt_error *error);
HOLT_API int holt_console_session_revoke(struct holt *holt, const char *id, int64_t deadline,
                                         struct holt_error *error);

/* --- forwarded ports -------------------------------------------------------------------------- */

/* A port of a sandbox that the daemon forwards to the host. */
struct holt_port {
    const char *sandbox_id;
    uint32_t port;       /* inside the sandbox */
    const char *address; /* "HOST:PORT" on the host */
    uint32_t connections;
};

struct holt_port_list {
    size_t count;
    const struct holt_port *const *items;
};

/* Lists the forwarded ports of a sandbox, or of all if sandbox is NULL, oldest first. */
HOLT_API int holt_port_list(struct holt *holt, const char *sandbox, int64_t deadline,
                            struct holt_port_list **ret, struct holt_error *error);

/* A link that opens an HTTP port of a sandbox in one browser, once, within a minute. */
struct holt_preview {
    const char *url;
    const char *host; /* in it, without a port */
    const char *code; /* in it */
    int64_t expires_ms;
};

/* Makes a link to a port. The browser then has a cookie that opens this port for eight hours;
 * holt_console_session_list lists such previews, holt_console_session_revoke ends them. */
HOLT_API int holt_preview_create(struct holt *holt, const char *sandbox, uint32_t port,
                                 int64_t deadline, struct holt_preview **ret,
                                 struct holt_error *error);

/* A forward that lasts until it is closed, its deadline, or the stop of the sandbox. */
struct holt_forward;

struct holt_forward_options {
    size_t size;
    const char *sandbox;
    uint32_t port;      /* inside the sandbox */
    const char *listen; /* "ADDR:PORT" or ":PORT" on the host; NULL: any free port */
};

/* Forwards a port of an active sandbox; returns when the daemon accepts connections. */
HOLT_API int holt_forward_open(struct holt *holt, const struct holt_forward_options *options,
                               int64_t deadline, struct holt_forward **ret,
                               struct holt_error *error);

/* Returns the address to connect to, "HOST:PORT". */
HOLT_API const char *holt_forward_address(const struct holt_forward *forward);

/* Waits for the end of the forward: 0, or -1 with its reason. */
HOLT_API int holt_forward_wait(struct holt_forward *forward, struct holt_error *error);

/* Ends the forward and its connections. */
HOLT_API void holt_forward_close(struct holt_forward *forward);

#ifdef __cplusplus
}
#endif
