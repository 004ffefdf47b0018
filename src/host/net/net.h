/* The network of sandboxes, as the daemon's part of it.
 *
 * A machine has a loopback device and nothing else. One with a network also has routes that make
 * addresses local, a BPF program that leads TCP connections to them to one listener, and a resolver
 * on NET_RESOLVER. Both sockets are held by the program holt-net (src/egress), which decides, dials
 * and moves bytes; this folder prepares namespaces, supervises holt-net and keeps the log. A
 * machine whose policy has mode none gets none of that; with models, it gets the routes of the
 * resolver and of llm.holt. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct err;
struct host;
struct machine;
struct net;
struct net_policy;

/* The address of the resolver in every sandbox (TEST-NET-1: no other host has it). */
#define NET_RESOLVER "192.0.2.53"

enum {
    NET_ID_MAX = 64,
    NET_LOG_LINES = 512, /* kept for each sandbox */
    NET_LOG_NAME_MAX = 255,
    NET_LOG_RULE_MAX = 200,
};

/* One connection or refused name. */
struct net_log_line {
    uint64_t number; /* from 1; gaps mean lines that were dropped */
    uint64_t time_ms;
    char protocol[8];                /* "dns", "tls", "http", "tcp" */
    char name[NET_LOG_NAME_MAX + 1]; /* "": unknown */
    char address[48];                /* "": none, as for a refused name */
    uint16_t port;
    bool is_allowed;
    char rule[NET_LOG_RULE_MAX + 1]; /* the rule or built-in reason that decided */
    char end[64]; /* how it ended: "closed", "refused", "dial: connection refused", "cut", ... */
    uint64_t bytes_out;
    uint64_t bytes_in;
    uint64_t duration_ms;
    bool is_special; /* the address is not public, or one of the host */
};

/* What all sandboxes did since the daemon started. */
struct net_counters {
    uint64_t connections; /* accepted from sandboxes */
    uint64_t open;        /* now */
    uint64_t denied;      /* connections and names */
    uint64_t failed_dials;
    uint64_t limited; /* refused by a bound */
    uint64_t leaks;   /* placeholders and values of secrets where they must not be */
    uint64_t queries;
    uint64_t bytes_out;
    uint64_t bytes_in;
    uint64_t restarts; /* of holt-net */
};

/* Makes the part of the host; nothing is started before the first machine with a network. */
int net_open(struct host *host, const struct config *config, struct net **ret, struct err *err);

/* Tells holt-net the keys of providers of models anew. */
void net_keys_changed(struct net *net);

/* Takes the proxy of the host and its zones over. They are in force for what is asked of holt-net
 * afterwards. Fails with ERR_INVALID; nothing has changed then. */
int net_configure(struct net *net, const struct config *config, struct err *err);

/* Ends holt-net and frees everything. Sandboxes reach nothing from then on. Accepts NULL. */
void net_close(struct net *net);

/* Fails with ERR_UNSUPPORTED, cause and remedy, where this machine cannot give a sandbox a network:
 * without holt-net or without BPF. */
int net_check(struct net *net, struct err *err);

/* What a network is for. All of it is copied. */
struct net_user {
    const char *id; /* names it in the log: the sandbox, or the machine of a run */
    const char *owner;
    const char *recorded; /* what the policy was computed from, see network_policy */
    const char *grants;   /* its secrets, see host/secret/grant.h; NULL: none */
};

/* Begins to give a machine the network of a policy, in a thread. The machine has no processes yet,
 * or was started by an earlier daemon process, and its namespace may have remains of a network.
 * User and policy are valid until net_start_end, which waits and must be called: it accepts the
 * NULL that is returned here after a failure and in mode none. After a failure the machine reaches
 * nothing.
 */
struct net_pending;
int net_start_begin(struct net *net, struct machine *machine, const struct net_user *user,
                    const struct net_policy *policy, struct net_pending **ret, struct err *err);
int net_start_end(struct net_pending *pending, struct err *err);

/* Changes the policy of a running machine, also from and to mode none, and cuts connections that
 * the new one forbids before it returns. */
int net_set(struct net *net, struct machine *machine, const struct net_user *user,
            const struct net_policy *policy, struct err *err);

/* Calls fn for every network that there is, with a copy of its user; runs of which nothing else is
 * known are among them. */
typedef void net_user_fn(struct host *host, const struct net_user *user);
void net_each_user(struct net *net, net_user_fn *fn);

/* Changes the policy of the networks with this id; does nothing if they have ended. */
int net_renew(struct net *net, const char *id, const struct net_policy *policy, struct err *err);

/* Gives the networks with this id the present values of its secrets, for requests that begin
 * afterwards; does nothing if they have ended. */
int net_renew_secrets(struct net *net, const char *id, struct err *err);

/* Ends all connections of the machine. Called before the machine is destroyed or released; does
 * nothing for one without a network. */
void net_stop(struct net *net, struct machine *machine);

/* Returns the variables that all processes of a machine get, NULL-terminated, in one piece of
 * memory that the caller frees; NULL: none. */
char **net_environment(struct net *net, const struct machine *machine);

/* Copies up to `max` lines of a sandbox with numbers above `after`, oldest first. Returns how many;
 * waits up to wait_ms for the first one. */
size_t net_log(struct net *net, const char *id, uint64_t after, uint64_t wait_ms,
               struct net_log_line *ret, size_t max);

/* Drops the log of a sandbox that was destroyed. */
void net_forget(struct net *net, const char *id);

void net_count(struct net *net, struct net_counters *ret);
