/* Upstream proxies: [socks5|http]://[USER[:PASSWORD]@]HOST:PORT. The login is a secret: it is in
 * the text of net_proxy_format, which is recorded and goes to holt-net, and nowhere else. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "net/address.h"
#include "net/name.h"

struct err;

enum net_proxy_kind {
    NET_PROXY_SOCKS5,
    NET_PROXY_HTTP, /* CONNECT */
};

enum { NET_PROXY_LOGIN_MAX = 255, NET_PROXY_SHOW_SIZE = NET_NAME_SIZE + 24 };

struct net_proxy {
    enum net_proxy_kind kind;
    char host[NET_NAME_SIZE];   /* a normalized name or an address */
    struct net_address address; /* AF_UNSPEC: the host is a name */
    uint16_t port;
    char user[NET_PROXY_LOGIN_MAX + 1]; /* "": no login */
    char password[NET_PROXY_LOGIN_MAX + 1];
};

/* Parses a URL; user and password are percent-decoded. Fails with ERR_INVALID and a reason that
 * never has the text of the URL in it. */
int net_proxy_parse(const char *text, struct net_proxy *ret, struct err *err);

/* Parses "HOST:PORT" of a SOCKS5 proxy, or a URL. */
int net_proxy_parse_address(const char *text, struct net_proxy *ret, struct err *err);

/* Sets the login, both as they are. Fails with ERR_INVALID. */
int net_proxy_login(struct net_proxy *proxy, const char *user, const char *password,
                    struct err *err);

/* Returns the URL with the login, which the caller frees. */
char *net_proxy_format(const struct net_proxy *proxy);

/* Writes the URL without the login. */
void net_proxy_show(const struct net_proxy *proxy, char ret[NET_PROXY_SHOW_SIZE]);

/* Return whether both are the same proxy with the same login; either may be NULL. */
bool net_proxy_equal(const struct net_proxy *one, const struct net_proxy *other);
