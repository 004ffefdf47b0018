/* Whom a request says it is for and where it comes from. A web page can make a browser on this
 * machine send requests to a port of ours, under a name that its owner has pointed at us (DNS
 * rebinding); it cannot choose Host and Origin. */
#pragma once

#include <stdbool.h>

struct origin_rules {
    bool is_local;       /* a unix socket: no name leads to it */
    const char *listen;  /* ADDR:PORT, whose ADDR is a name of ours */
    const char *hosts;   /* further names, with commas between them */
    const char *origins; /* whose pages may call */
};

/* Whether a Host header (NULL: absent) names us: an IP address, localhost, or a name of the above;
 * any port. */
bool origin_rules_allow_host(const struct origin_rules *origin_rules, const char *host);

/* Whether a request with this Origin header (NULL: absent, as with all but browsers) is welcome. */
bool origin_rules_allow_origin(const struct origin_rules *origin_rules, const char *origin);
