/* Internal interface of the net folder. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/lock.h"
#include "base/thread.h"
#include "host/net/net.h"
#include "kernel/route.h"
#include "net/policy.h"

struct machine;
struct net_log_ring;

/* The routes that a policy needs, apart from those of grants. */
struct net_routes {
    struct route_entry *list;
    size_t count;
};

enum { NET_DENIED_TARGETS_MAX = 5 }; /* in a line of the audit log, which then fits a page */

struct net_denied_target {
    char host[NET_LOG_NAME_MAX + 1]; /* name, else address */
    char rule[NET_LOG_RULE_MAX + 1];
    uint16_t port;
    uint64_t count;
};

/* What was refused since the last line of the audit log. */
struct net_denials {
    uint64_t count; /* also of targets that are not in the list */
    struct net_denied_target targets[NET_DENIED_TARGETS_MAX];
    size_t target_count;
    uint64_t due_ms;     /* when the next line is written */
    uint64_t written_ms; /* 0: none yet */
};

/* A machine with a network. Used by the thread; the list is under the lock. */
struct net_guest {
    struct net_guest *next;
    struct machine *machine; /* valid until net_stop returns */
    uint64_t number;
    char id[NET_ID_MAX];
    char *owner;
    char *recorded;
    char *grants; /* NULL: none; constant */
    struct net_policy policy;
    struct net_routes routes;
    struct net_denials denials;
    uint64_t leaks; /* since the last line of the audit log */
    uint64_t leak_written_ms;
    uint64_t bytes_out; /* that it has sent, for a holt-net that is started again */
    bool is_attached;   /* holt-net was told of it */
};

enum net_job_kind { NET_JOB_START, NET_JOB_SET, NET_JOB_RENEW, NET_JOB_SECRETS, NET_JOB_STOP };

/* What a caller waits for the thread to do. */
struct net_job {
    struct net_job *next;
    enum net_job_kind kind;
    struct machine *machine;
    struct net_user user;
    const struct net_policy *policy;
    uint64_t number; /* of the guest whose "done" ends the job; 0: not sent yet */
    uint64_t target; /* of the guest to renew */
    struct err *err;
    int result;
    bool is_done;
};

struct net {
    struct host *host;
    int home_fd; /* the daemon's own network namespace */
    ino_t home;
    int bpf_result; /* 0, or why the kernel refuses the BPF program */
    int pins_fd;    /* keeps the programs of guests attached, by their numbers */
    int wake_fd;
    struct thread thread;

    struct lock lock; /* protects the lists, the log and the counters */
    struct cond changed;
    bool is_stopping;
    struct net_job *jobs, **last_job; /* that the thread has not looked at */
    struct net_guest *guests;
    struct net_log_ring *logs;
    struct net_counters past; /* of processes that have ended */
    struct net_counters now;  /* of the one that runs */
    json_t *upstream;         /* see net_upstream_read; has the login of the proxy */
    bool has_news;            /* it has changed since the last hello */

    /* Used by the thread only. */
    struct net_job *waiting; /* for "done", oldest first */
    json_t *bounds;          /* of each sandbox, for the hello; not changed */
    char *resolvers;         /* JSON of the last hello */
    int control_fd;
    int pidfd;
    pid_t pid;
    uint64_t started_ms;
    uint64_t restart_ms; /* when to start it again; 0: now */
    uint64_t backoff_ms;
    uint64_t hello_ms;
    uint64_t heard_ms; /* when it sent something, or was asked for an answer */
    uint64_t last_number;
    uint64_t denials_due_ms; /* the earliest of the guests; 0: none */
    uint64_t ports_until_ms; /* an earlier holt-net, of a daemon that was killed, may have ports */
};

/* --- guest.c --- */

/* Only the thread changes the list, so it reads it without the lock; others take the lock. */
struct net_guest *net_guest_find(const struct net *net, const struct machine *machine);
struct net_guest *net_guest_of_number(const struct net *net, uint64_t number);
struct net_guest *net_guest_new(struct net *net, const struct net_job *job);

/* Prepares the namespace and gives holt-net its sockets. */
int net_guest_attach(struct net *net, struct net_guest *guest, struct err *err);

/* Adds the secrets of a guest to a message, if it has any. Returns the message. */
json_t *net_guest_add_secrets(struct net *net, const struct net_guest *guest, json_t *message);

/* Gives a guest its ssh-agent, if it has keys. A failure is logged: the rest of the network works.
 */
void net_agent_attach(struct net *net, const struct net_guest *guest);

/* Gives its agent the present keys. */
void net_agent_renew(struct net *net, const struct net_guest *guest);

/* Ends the network of a machine, whose namespace is cleared if it is still there. */
void net_guest_detach(struct net *net, struct net_guest *guest, bool has_namespace);
void net_guest_free(struct net_guest *guest);

/* --- job.c; called by the thread --- */

/* Starts the jobs that callers have given. */
void net_jobs_run(struct net *net);

/* Goes on with the oldest job of a guest: its policy is in force in holt-net, its routes follow. */
void net_job_answered(struct net *net, uint64_t number);

/* Ends the jobs that wait for an answer of a holt-net that has ended. What they asked for is in
 * force: no connection has survived. */
void net_jobs_end(struct net *net);

/* Refuses all jobs. No more can come: net_close has set is_stopping. */
void net_jobs_abandon(struct net *net);

/* --- namespace.c: what is done inside the network namespace of a machine --- */

/* The sockets that holt-net gets. */
struct net_sockets {
    int listener_fd;
    int resolver_fd;
};
void net_sockets_done(struct net_sockets *sockets);

/* Computes the routes of a policy. */
void net_routes_fill(const struct net_policy *policy, struct net_routes *ret);
void net_routes_done(struct net_routes *routes);

/* Prepares the namespace of the guest's machine: removes remains, adds the routes, makes the
 * sockets and attaches the program. */
int net_namespace_prepare(struct net *net, struct net_guest *guest, struct net_sockets *ret,
                          struct err *err);

/* Replaces the routes of the policy; those of grants stay. */
int net_namespace_reroute(struct net *net, struct net_guest *guest, struct net_routes *routes,
                          struct err *err);

/* Removes all routes, so that connect fails at once. */
void net_namespace_clear(struct net *net, const struct net_guest *guest);

/* Adds or removes the routes of grants; addresses is an array of texts. Returns 0 or -errno. */
int net_namespace_grant(struct net *net, const struct net_guest *guest, const json_t *addresses,
                        bool is_granted);

/* --- denial.c; called by the thread --- */

/* Counts a line of the log if it is a refusal. */
void net_denials_note(struct net *net, struct net_guest *guest, const json_t *line);

/* Adds a line to the audit log if something was refused since the last one. */
void net_denials_write(struct net *net, struct net_guest *guest);

/* Does that for all guests where it is due: at most once a minute for each. */
void net_denials_tick(struct net *net);

/* --- helper.c: the process holt-net --- */

/* Starts holt-net, if it does not run, and sends the first message. */
int net_helper_start(struct net *net, struct err *err);

/* Ends and reaps it. */
void net_helper_stop(struct net *net);

/* Sends the first message again if anything in it has changed. */
int net_helper_update(struct net *net);

/* Sends the name servers again if they have changed. */
void net_helper_refresh(struct net *net);

/* Sends a message, which it takes, with descriptors. Returns 0 or -errno. */
int net_helper_send(struct net *net, json_t *message, const int *fds, size_t fd_count);

/* --- log.c; the lock is held --- */

void net_log_add(struct net *net, const char *id, const json_t *line);
void net_logs_free(struct net *net);
void net_counters_read(struct net *net, const json_t *message);
