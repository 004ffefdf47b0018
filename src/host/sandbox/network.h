/* The network policies of sandboxes. A sandbox has a layer of its own and a copy of its template's,
 * which are recorded; holt.conf and the ceilings of its owner add theirs whenever the policy is
 * used, so a change of either applies to sandboxes that exist. net/policy.h has the rules and what
 * they mean. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/net/net.h"
#include "net/policy.h"

struct caller;
struct err;
struct host;
struct machine;
struct sandbox;

/* Returns whether the ceilings allow this mode, and this machine can give it. */
bool network_may_have(struct host *host, const char *owner, enum net_mode mode);

/* What a policy is for. */
struct network_holder {
    const char *owner;
    const char *runtime;
    const char *template; /* its name in the store */
};

/* Computes what to record for a new sandbox: NULL for nothing. A NULL layer is that of the
 * template, else the daemon's default. Fails with ERR_EXHAUSTED (CeilingReached) above the ceiling
 * of the owner, ERR_DENIED above that of holt.conf, and ERR_UNSUPPORTED where sandboxes, or those
 * of the runtime, cannot have a network. */
int network_record(struct host *host, const struct network_holder *holder,
                   const struct net_layer *layer, char **ret_recorded, struct err *err);

/* Computes what to record when the layer is replaced. That of the template stays as it was
 * recorded. */
int network_record_again(struct host *host, const struct network_holder *holder,
                         const char *recorded, const struct net_layer *layer, char **ret_recorded,
                         struct err *err);

/* Computes the whole policy: that of holt.conf, the owner's and the recorded ones (NULL: none), in
 * so far as they decide: without the headers and certificates of host/secret/header.h. */
int network_policy(struct host *host, const char *owner, const char *recorded,
                   struct net_policy *ret, struct err *err);

/* Reads the layers that are recorded (NULL: none). */
int network_recorded_read(const char *recorded, struct net_policy *ret, struct err *err);

/* Takes a layer out of those that are recorded; false if there is none. */
bool network_recorded_take(struct net_policy *recorded, enum net_source source,
                           struct net_layer *ret);

/* Returns the mode of a new sandbox of this template (NULL: the default) that sets none. */
enum net_mode network_default_mode(struct host *host, const struct caller *caller,
                                   const char *template);

/* Returns the mode that the whole policy amounts to, as a word. */
const char *network_mode_name(struct host *host, const char *owner, const char *recorded);

/* Returns whether this host has the address now. */
bool network_is_own_address(const struct net_address *address);

/* --- network_change.c --- */

/* Returns the layer that a sandbox has recorded, in mode none if there is none. */
int sandbox_network_layer(struct sandbox *sandbox, struct net_layer *ret, struct err *err);

/* Returns the whole policy of a sandbox. */
int sandbox_network_policy(struct sandbox *sandbox, struct net_policy *ret, struct err *err);

/* A network that is being started. */
struct network_start {
    struct net_user user;
    char *recorded;
    struct net_policy policy;
    unsigned changes; /* of holt.conf and ceilings, when the policy was computed */
    struct net_pending *pending;
};

/* Begins to give a machine that is being booted for the sandbox the network of its policy, in a
 * thread. sandbox_network_end waits for it and must be called, also after a failure. */
int sandbox_network_begin(struct sandbox *sandbox, struct machine *machine,
                          struct network_start *ret, struct err *err);
int sandbox_network_end(struct sandbox *sandbox, struct network_start *start, struct err *err);

/* Gives a machine that has survived the daemon the network of its sandbox's policy; does nothing if
 * that is none. */
int sandbox_network_start(struct sandbox *sandbox, struct machine *machine, struct err *err);

/* Does the same for a machine without a sandbox, from what network_record has returned. */
int machine_network_start(struct machine *machine, const char *owner, const char *recorded,
                          struct err *err);

/* Copies lines of the sandbox's log, see net_log. */
struct net_log_line;
size_t sandbox_network_log(struct sandbox *sandbox, uint64_t after, uint64_t wait_ms,
                           struct net_log_line *ret, size_t max);

/* Applies a change of holt.conf or of a ceiling to all sandboxes that run. */
void network_apply(struct host *host);

/* Replaces the layer of a sandbox and records it. A running machine has it when this returns, and
 * connections that it forbids are cut. Fails like network_record. */
int sandbox_network_set(struct sandbox *sandbox, const struct net_layer *layer, struct err *err);

/* Lets a function change the layer of a sandbox, then does the same; no other change of the sandbox
 * comes in between. */
typedef int network_change(const void *data, struct net_layer *layer, struct err *err);
int sandbox_network_change(struct sandbox *sandbox, network_change *change, const void *data,
                           struct err *err);

/* Lets a sandbox reach what is public, as far as the other layers allow it, until
 * sandbox_network_learn_end. It is not recorded, so a daemon that starts again has the policy of
 * before. Fails like network_record, and with ERR_BUSY if that is so already. */
int sandbox_network_learn(struct sandbox *sandbox, struct err *err);
void sandbox_network_learn_end(struct sandbox *sandbox);
