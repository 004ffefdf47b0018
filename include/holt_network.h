/* The networks of sandboxes in libholt; holt.h includes this file. A policy has up to four layers
 * (holt.conf, owner, template, sandbox), and all of them must allow a connection. The layer of a
 * sandbox can be given when it is created (network of struct holt_sandbox_options). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a new sandbox may reach. Rules are "[METHOD] [scheme://]host-or-CIDR[:ports][/path]"; lists
 * end with NULL (NULL: none). The size of this structure is fixed. */
struct holt_network_rules {
    const char *mode; /* "none", "open", "allow"; NULL: "allow" if there are rules */
    const char *const *allow;
    const char *const *deny;
};

struct holt_network_layer {
    const char *source; /* "holt.conf", "owner", "template", "sandbox" */
    const char *mode;   /* "none", "open", "allow"; of holt.conf also "any": no limit */
    const char *const *allow;
    size_t allow_count;
    const char *const *deny;
    size_t deny_count;
    bool is_allow_first;       /* a rule that allows wins over one that denies, as in E2B's lists */
    const char *proxy;         /* URL of the proxy without its login; "": none */
    const char *const *models; /* that the sandbox may use at llm.holt */
    size_t model_count;
};

struct holt_network {
    const char *mode; /* what all layers together amount to: "none", "open" or "allow" */
    const struct holt_network_layer *const *layers;
    size_t layer_count;
    bool is_learning; /* the layer of the sandbox is open for now, see holt_network_learn */
};

/* Returns the policy of a sandbox with all its layers. */
HOLT_API int holt_network_get(struct holt *holt, const char *sandbox, int64_t deadline,
                              struct holt_network **ret, struct holt_error *error);

/* Lists end with NULL. */
struct holt_network_options {
    size_t size;
    const char *mode; /* replaces the whole layer; NULL: it stays, and the lists change it */
    const char *const *allow; /* rules to add */
    const char *const *deny;
    const char *const *remove; /* from both lists, before others are added */
    /* "socks5://[USER:PASSWORD@]HOST:PORT" or "http://...", user and password percent-encoded;
     * "none" removes it; NULL: it stays */
    const char *proxy;
};

/* Changes the layer of a sandbox. It applies at once; connections that it forbids are cut. ret may
 * be NULL. */
HOLT_API int holt_network_set(struct holt *holt, const char *sandbox,
                              const struct holt_network_options *options, int64_t deadline,
                              struct holt_network **ret, struct holt_error *error);

/* Return and replace the layer of a template, for sandboxes that are created from it afterwards.
 * The result has one layer or none; rules NULL: the template has none any more. ret of the second
 * may be NULL. */
HOLT_API int holt_network_get_template(struct holt *holt, const char *template_name,
                                       int64_t deadline, struct holt_network **ret,
                                       struct holt_error *error);
HOLT_API int holt_network_set_template(struct holt *holt, const char *template_name,
                                       const struct holt_network_rules *rules, int64_t deadline,
                                       struct holt_network **ret, struct holt_error *error);

/* A connection that has ended or was refused, or a name that was refused. */
struct holt_connection {
    uint64_t number; /* from 1; a gap means lines that were dropped */
    int64_t time_ms;
    const char *protocol; /* "dns", "tls", "http" or "tcp" */
    const char *name;     /* "": unknown */
    const char *address;  /* "": none */
    uint32_t port;
    bool is_allowed;
    const char *rule; /* that decided, with its layer */
    const char *end;  /* "closed", "refused", "cut", ... */
    uint64_t bytes_out;
    uint64_t bytes_in;
    uint64_t duration_ms;
    bool is_special_address; /* not public, or of the host: only a rule for its range allows it */
};

struct holt_connection_list {
    size_t count;
    const struct holt_connection *const *items;
};

/* Takes one message of holt_network_learn; returns 0 to go on. */
typedef int (*holt_learn_fn)(void *context, const struct holt_connection_list *connections);

/* Lets a sandbox reach what is public, as far as the other layers allow it, and passes its
 * connections as they end, until the function returns another value than 0. It is called once when
 * the network is open, and about four times a second, also without a connection. The sandbox has
 * its own policy again afterwards, also if the caller is killed. */
HOLT_API int holt_network_learn(struct holt *holt, const char *sandbox, holt_learn_fn fn,
                                void *context, int64_t deadline, struct holt_error *error);

struct holt_network_log_options {
    size_t size;
    uint64_t after;   /* only lines with a higher number */
    uint32_t limit;   /* 0: 512 */
    uint64_t wait_ms; /* for the first line; at most a minute */
};

/* Returns the latest connections of a sandbox, oldest first. options may be NULL. */
HOLT_API int holt_network_log(struct holt *holt, const char *sandbox,
                              const struct holt_network_log_options *options, int64_t deadline,
                              struct holt_connection_list **ret, struct holt_error *error);

struct holt_network_target {
    size_t size;
    const char *target;  /* "https://HOST", "HOST:PORT", ... */
    const char *address; /* what the name is taken to resolve to; NULL: a public address */
    const char *method;  /* of an http target; NULL: GET */
};

struct holt_network_verdict {
    bool is_allowed;
    const char *rule; /* that decided, with its layer */
};

/* Decides as for a connection of the sandbox, without making one. */
HOLT_API int holt_network_test(struct holt *holt, const char *sandbox,
                               const struct holt_network_target *target, int64_t deadline,
                               struct holt_network_verdict **ret, struct holt_error *error);

#ifdef __cplusplus
}
#endif
