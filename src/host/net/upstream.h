/* The proxy of the host and its private zones, as holt.conf has them: net.proxy, net.proxy-file,
 * net.no-proxy, net.zones. */
#pragma once

#include <jansson.h>

struct config;
struct err;

/* Check one value each. Fail with ERR_INVALID; a login is never in the message. */
int net_proxy_check(const char *text, struct err *err);
int net_no_proxy_check(const char *text, struct err *err);
int net_zones_check(const char *text, struct err *err);

/* Makes "proxy", "direct" and "zones" of the config of egress/control.h; reads net.proxy-file. The
 * result has the login of the proxy. Fails with ERR_INVALID or as a system call. */
int net_upstream_read(const struct config *config, json_t **ret, struct err *err);
