/* One rule: [METHOD] [scheme://]host-or-range[:ports][/path]. See docs/network.md for the language.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/address.h"
#include "net/name.h"

struct err;
struct net_request;

enum { NET_RULE_MAX = 400, NET_PORTS_MAX = 16, NET_METHOD_MAX = 16, NET_PATH_MAX = 128 };

enum net_scheme {
    NET_ANY_SCHEME,
    NET_SCHEME_HTTP,
    NET_SCHEME_HTTPS,
    NET_SCHEME_TCP, /* also ssh: any bytes */
};

struct net_ports {
    uint16_t first;
    uint16_t last;
};

struct net_rule {
    enum net_scheme scheme;
    bool is_range;            /* an address or a range, not a name */
    struct net_prefix range;  /* if is_range */
    char name[NET_NAME_SIZE]; /* else: a pattern */
    size_t port_count;        /* 0: all ports */
    struct net_ports ports[NET_PORTS_MAX];
    bool has_default_ports;          /* the rule names none: 80 and 443 of a name it allows */
    char method[NET_METHOD_MAX + 1]; /* "": all */
    char path[NET_PATH_MAX + 1];     /* "": all */
    char text[NET_RULE_MAX + 1];     /* the rule in its one spelling */
};

/* Parses a rule. Fails with ERR_INVALID and the reason; a rule is never partly understood. */
int net_rule_parse(const char *text, struct net_rule *ret, struct err *err);

/* Return whether an allow or a deny rule applies to a request whose name is normalized. The two
 * differ in what a rule leaves open: a deny rule without ports is for all ports, and applies to the
 * address that a translator reaches as well. */
bool net_rule_allows(const struct net_rule *rule, const struct net_request *request);
bool net_rule_denies(const struct net_rule *rule, const struct net_request *request);

/* Returns whether the rule is about requests inside TLS. */
bool net_rule_is_inside_tls(const struct net_rule *rule);

/* Returns whether the rule is about requests inside TLS to this name, which is normalized. */
bool net_rule_reads_https(const struct net_rule *rule, const char *name, uint16_t port);

/* Return whether an allow rule makes a name worth resolving, and whether a deny rule forbids the
 * name whatever is done with it. */
bool net_rule_allows_name(const struct net_rule *rule, const char *name);
bool net_rule_denies_name(const struct net_rule *rule, const char *name);
