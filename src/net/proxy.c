// SPDX-License-Identifier: Apache-2.0
#include "net/proxy.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "base/xalloc.h"

enum { URL_MAX = 2048 };

static const struct {
    const char *prefix;
    enum net_proxy_kind kind;
} schemes[] = {
    { "socks5://", NET_PROXY_SOCKS5 },
    { "http://", NET_PROXY_HTTP },
};

static const char *scheme_of(enum net_proxy_kind kind)
{
    return schemes[kind].prefix;
}

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* Decodes %XX. Returns false if the text is too long, malformed or has a NUL. */
static bool part_decode(const char *text, size_t len, char ret[NET_PROXY_LOGIN_MAX + 1])
{
    size_t used = 0;

    for (size_t i = 0; i < len; i++) {
        int byte = (unsigned char)text[i];

        if (byte == '%') {
            int high = i + 2 < len ? hex_value(text[i + 1]) : -1;
            int low = i + 2 < len ? hex_value(text[i + 2]) : -1;

            if (high < 0 || low < 0)
                return false;
            byte = high * 16 + low;
            i += 2;
        }
        if (byte == 0 || used == NET_PROXY_LOGIN_MAX)
            return false;
        ret[used++] = (char)byte;
    }
    ret[used] = '\0';
    return true;
}

/* HTTP separates the two by a colon. */
static int login_check(const struct net_proxy *proxy, struct err *err)
{
    if (proxy->user[0] == '\0')
        return err_set(err, ERR_INVALID, "the login of the proxy has no user name");
    if (proxy->kind == NET_PROXY_HTTP && strchr(proxy->user, ':'))
        return err_set(err, ERR_INVALID, "the user name of an HTTP proxy cannot have a colon");
    return 0;
}

static int userinfo_parse(const char *text, size_t len, struct net_proxy *proxy, struct err *err)
{
    const char *colon = memchr(text, ':', len);
    size_t user_len = colon ? (size_t)(colon - text) : len;
    bool is_good = part_decode(text, user_len, proxy->user);

    if (is_good && colon)
        is_good = part_decode(colon + 1, len - user_len - 1, proxy->password);
    if (!is_good)
        return err_set(err, ERR_INVALID,
                       "user and password of the proxy must be percent-encoded and have at most "
                       "%d bytes each",
                       NET_PROXY_LOGIN_MAX);
    return login_check(proxy, err);
}

static int host_parse(const char *text, size_t len, struct net_proxy *proxy, struct err *err)
{
    bool has_brackets = len > 2 && text[0] == '[' && text[len - 1] == ']';
    char address[INET6_ADDRSTRLEN] = "";
    const char *reason;

    if (has_brackets) {
        text++;
        len -= 2;
    }
    if (len < sizeof(address)) {
        memcpy(address, text, len);
        address[len] = '\0';
        if (net_address_parse(address, &proxy->address) == 0 &&
            has_brackets == (strchr(address, ':') != NULL)) {
            /* in its one form, which may be of the other family */
            (void)inet_ntop(proxy->address.family, proxy->address.bytes, proxy->host,
                            sizeof(proxy->host));
            return 0;
        }
    }
    proxy->address = (struct net_address){ .family = AF_UNSPEC };
    reason = has_brackets ? "not an IPv6 address" : net_name_normalize(text, len, proxy->host);
    return reason ? err_set(err, ERR_INVALID, "the host of the proxy is not valid: %s", reason) : 0;
}

static int host_port_parse(const char *text, struct net_proxy *proxy, struct err *err)
{
    const char *colon = strrchr(text, ':');
    char digits[8] = "";
    uint64_t port = 0;
    size_t len;

    if (!colon || strchr(colon, ']'))
        return err_set(err, ERR_INVALID, "the proxy needs HOST:PORT");
    len = strcspn(colon + 1, "/");
    if (len < sizeof(digits))
        memcpy(digits, colon + 1, len);
    if (parse_u64(digits, &port) < 0 || port == 0 || port > UINT16_MAX ||
        (colon[1 + len] == '/' && colon[2 + len] != '\0'))
        return err_set(err, ERR_INVALID, "the port of the proxy must be between 1 and 65535");
    proxy->port = (uint16_t)port;
    return host_parse(text, (size_t)(colon - text), proxy, err);
}

int net_proxy_parse(const char *text, struct net_proxy *ret, struct err *err)
{
    struct net_proxy proxy = { .port = 0 };
    const char *rest = NULL, *at;
    int r = 0;

    if (strlen(text) > URL_MAX)
        return err_set(err, ERR_INVALID, "the URL of the proxy is longer than %d bytes", URL_MAX);
    for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
        if (strncmp(text, schemes[i].prefix, strlen(schemes[i].prefix)) == 0) {
            proxy.kind = schemes[i].kind;
            rest = text + strlen(schemes[i].prefix);
        }
    }
    if (!rest) {
        (void)err_set(err, ERR_INVALID, "the scheme of the proxy must be socks5:// or http://");
        return err_remedy(err, "write socks5://HOST:PORT or http://HOST:PORT");
    }
    at = strrchr(rest, '@');
    if (at)
        r = userinfo_parse(rest, (size_t)(at - rest), &proxy, err);
    if (r == 0)
        r = host_port_parse(at ? at + 1 : rest, &proxy, err);
    if (r == 0)
        *ret = proxy;
    return r;
}

int net_proxy_parse_address(const char *text, struct net_proxy *ret, struct err *err)
{
    cleanup_free char *url = strstr(text, "://") ? NULL : xasprintf("socks5://%s", text);

    return net_proxy_parse(url ? url : text, ret, err);
}

int net_proxy_login(struct net_proxy *proxy, const char *user, const char *password,
                    struct err *err)
{
    if (strlen(user) > NET_PROXY_LOGIN_MAX || strlen(password) > NET_PROXY_LOGIN_MAX)
        return err_set(err, ERR_INVALID, "user and password of a proxy have at most %d bytes each",
                       NET_PROXY_LOGIN_MAX);
    (void)snprintf(proxy->user, sizeof(proxy->user), "%s", user);
    (void)snprintf(proxy->password, sizeof(proxy->password), "%s", password);
    return login_check(proxy, err);
}

static void part_encode(const char *text, struct buf *out)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";

    for (; *text; text++) {
        if (strchr(plain, *text))
            (void)buf_add(out, text, 1);
        else
            (void)buf_printf(out, "%%%02X", (unsigned)(unsigned char)*text);
    }
}

static void host_port_write(const struct net_proxy *proxy, struct buf *out)
{
    bool is_v6 = proxy->address.family == AF_INET6;

    (void)buf_printf(out, is_v6 ? "[%s]:%u" : "%s:%u", proxy->host, (unsigned)proxy->port);
}

char *net_proxy_format(const struct net_proxy *proxy)
{
    struct buf out = BUF_INIT(URL_MAX);

    (void)buf_add_str(&out, scheme_of(proxy->kind));
    if (proxy->user[0]) {
        part_encode(proxy->user, &out);
        (void)buf_add_str(&out, ":");
        part_encode(proxy->password, &out);
        (void)buf_add_str(&out, "@");
    }
    host_port_write(proxy, &out);
    return out.data;
}

void net_proxy_show(const struct net_proxy *proxy, char ret[NET_PROXY_SHOW_SIZE])
{
    (void)snprintf(ret, NET_PROXY_SHOW_SIZE, "%s%s%s%s:%u", scheme_of(proxy->kind),
                   proxy->address.family == AF_INET6 ? "[" : "", proxy->host,
                   proxy->address.family == AF_INET6 ? "]" : "", (unsigned)proxy->port);
}

bool net_proxy_equal(const struct net_proxy *one, const struct net_proxy *other)
{
    if (!one || !other)
        return one == other;
    return one->kind == other->kind && one->port == other->port &&
           strcmp(one->host, other->host) == 0 && strcmp(one->user, other->user) == 0 &&
           strcmp(one->password, other->password) == 0;
}
