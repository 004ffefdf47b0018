/* The origin check: which Host and Origin headers are accepted. A web page can make a browser on
 * this machine send requests to our port, under a name that points to us (DNS rebinding), but it
 * cannot choose these two headers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;

struct origin_rules {
    bool is_local;       /* a unix socket: it has no host name */
    const char *listen;  /* ADDR:PORT; its ADDR is accepted as a host */
    const char *hosts;   /* further host names, separated by commas */
    const char *origins; /* origins whose pages may call */
    const char *preview; /* "[https://]NAME[:PORT]", below which ports are served; "": none */
};

/* Fails with ERR_INVALID unless preview.domain is a name that has nothing to do with those of the
 * daemon: cookies that a page below it sets for a parent domain must not reach the console, nor
 * those of the console a page. */
int origin_rules_check_preview(const struct origin_rules *origin_rules, struct err *err);

/* Whether a host, with any port, is preview.domain. */
bool origin_rules_is_preview(const struct origin_rules *origin_rules, const char *host);

/* Whether ports of sandboxes may be served under names below this host. With preview.domain that
 * is the only one besides localhost. */
bool origin_rules_allow_ports(const struct origin_rules *origin_rules, const char *host);

/* Whether browsers see preview.domain over TLS that another server ends. */
bool origin_rules_has_tls_front(const struct origin_rules *origin_rules);

/* Whether a Host header (NULL: absent) is accepted: an IP address, localhost or a configured name,
 * with any port. */
bool origin_rules_allow_host(const struct origin_rules *origin_rules, const char *host);

/* Writes the name that clients use below which host names of ports are: the first of `hosts`, or
 * that in `listen` if it is a name, or localhost. */
void origin_rules_name(const struct origin_rules *origin_rules, char *ret, size_t size);

/* Whether an Origin header is that of a page which this daemon served itself, under the host name
 * and port of the request. */
bool origin_is_same(const char *origin, const char *host, bool is_tls);

/* Whether an Origin header (NULL: absent; only browsers send it) is accepted. */
bool origin_rules_allow_origin(const struct origin_rules *origin_rules, const char *origin);
