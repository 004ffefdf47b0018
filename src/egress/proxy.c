// SPDX-License-Identifier: Apache-2.0
#include "egress/proxy.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/base64.h"

enum {
    SOCKS_VERSION = 5,
    SOCKS_LOGIN_VERSION = 1,
    SOCKS_NO_LOGIN = 0,
    SOCKS_PASSWORD = 2,
    SOCKS_NO_METHOD = 0xff,
    SOCKS_CONNECT = 1,
    SOCKS_IPV4 = 1,
    SOCKS_NAME = 3,
    SOCKS_IPV6 = 4,
    IPV4_BYTES = 4,
    IPV6_BYTES = 16,
};

__attribute__((format(printf, 2, 3))) static void talk_fail(struct proxy_talk *talk,
                                                            const char *format, ...)
{
    va_list args;

    talk->state = PROXY_FAILED;
    va_start(args, format);
    (void)vsnprintf(talk->reason, sizeof(talk->reason), format, args);
    va_end(args);
}

static void out_add(struct proxy_talk *talk, const void *data, size_t len)
{
    if (len > sizeof(talk->out) - talk->out_len) {
        talk_fail(talk, "its login is too long");
        return;
    }
    memcpy(talk->out + talk->out_len, data, len);
    talk->out_len += len;
}

/* The next message replaces the last one, which was sent completely. */
static void out_begin(struct proxy_talk *talk)
{
    talk->out_len = talk->out_sent = 0;
}

/* --- SOCKS5 --- */

static void socks_greet(struct proxy_talk *talk)
{
    static const uint8_t plain[] = { SOCKS_VERSION, 1, SOCKS_NO_LOGIN };
    static const uint8_t with_login[] = { SOCKS_VERSION, 2, SOCKS_NO_LOGIN, SOCKS_PASSWORD };

    talk->step = PROXY_METHOD;
    if (talk->proxy->user[0])
        out_add(talk, with_login, sizeof(with_login));
    else
        out_add(talk, plain, sizeof(plain));
}

static void socks_text_add(struct proxy_talk *talk, const char *text)
{
    const uint8_t len = (uint8_t)strlen(text);

    out_add(talk, &len, 1);
    out_add(talk, text, len);
}

static void socks_log_in(struct proxy_talk *talk)
{
    static const uint8_t version = SOCKS_LOGIN_VERSION;

    talk->step = PROXY_LOGIN;
    out_begin(talk);
    out_add(talk, &version, 1);
    socks_text_add(talk, talk->proxy->user);
    socks_text_add(talk, talk->proxy->password);
}

static void socks_request(struct proxy_talk *talk)
{
    bool is_v4 = talk->target.family == AF_INET;
    const uint8_t head[] = { SOCKS_VERSION, SOCKS_CONNECT, 0, is_v4 ? SOCKS_IPV4 : SOCKS_IPV6 };
    const uint8_t port[] = { (uint8_t)(talk->port >> 8), (uint8_t)talk->port };

    talk->step = PROXY_REPLY;
    out_begin(talk);
    out_add(talk, head, sizeof(head));
    out_add(talk, talk->target.bytes, is_v4 ? IPV4_BYTES : IPV6_BYTES);
    out_add(talk, port, sizeof(port));
}

static void socks_method(struct proxy_talk *talk)
{
    uint8_t method = talk->in[1];

    if (talk->in[0] != SOCKS_VERSION)
        talk_fail(talk, "it does not speak SOCKS5");
    else if (method == SOCKS_NO_LOGIN)
        socks_request(talk);
    else if (method == SOCKS_PASSWORD && talk->proxy->user[0])
        socks_log_in(talk);
    else if (method == SOCKS_NO_METHOD)
        talk_fail(talk, talk->proxy->user[0] ? "it takes no password" : "it asks for a password");
    else
        talk_fail(talk, "it asks for an unknown way to log in");
}

static void socks_login_reply(struct proxy_talk *talk)
{
    if (talk->in[0] != SOCKS_LOGIN_VERSION)
        talk_fail(talk, "malformed reply to the login");
    else if (talk->in[1] != 0)
        talk_fail(talk, "the login was refused");
    else
        socks_request(talk);
}

static bool socks_kind_is_known(uint8_t kind)
{
    return kind == SOCKS_IPV4 || kind == SOCKS_IPV6 || kind == SOCKS_NAME;
}

static void socks_reply(struct proxy_talk *talk)
{
    static const struct {
        const char *text;
        bool blames_target;
    } replies[] = {
        [1] = { "it reports a general failure", true },
        [2] = { "its rules do not allow the connection", false },
        [3] = { "it reports: network unreachable", true },
        [4] = { "it reports: host unreachable", true },
        [5] = { "it reports: connection refused", true },
        [6] = { "it reports: TTL expired", true },
        [7] = { "it does not know the command", false },
        [8] = { "it does not know the kind of address", true },
    };
    uint8_t code = talk->in[1], kind = talk->in[3];

    if (talk->in[0] != SOCKS_VERSION || !socks_kind_is_known(kind)) {
        talk_fail(talk, "malformed reply");
    } else if (code == 0) {
        talk->state = PROXY_READY;
    } else if (code < ARRAY_SIZE(replies)) {
        talk_fail(talk, "%s", replies[code].text);
        talk->blames_target = replies[code].blames_target;
    } else {
        talk_fail(talk, "it reports error %u", (unsigned)code);
    }
}

/* Returns how many bytes this step needs before it can be handled. Of a reply that is no success
 * the first four suffice; some proxies send nothing more. */
static size_t socks_needs(const struct proxy_talk *talk)
{
    const uint8_t *in = talk->in;

    if (talk->step != PROXY_REPLY)
        return 2;
    if (talk->in_len < 4 || in[0] != SOCKS_VERSION || in[1] != 0 || !socks_kind_is_known(in[3]))
        return 4;
    if (in[3] == SOCKS_NAME)
        return talk->in_len < 5 ? 5 + 2 : 5 + (size_t)in[4] + 2;
    return 4 + (in[3] == SOCKS_IPV4 ? IPV4_BYTES : IPV6_BYTES) + 2;
}

static void socks_take(struct proxy_talk *talk)
{
    if (talk->step == PROXY_METHOD)
        socks_method(talk);
    else if (talk->step == PROXY_LOGIN)
        socks_login_reply(talk);
    else
        socks_reply(talk);
}

/* --- HTTP --- */

static void http_request(struct proxy_talk *talk)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(PROXY_OUT_MAX);
    cleanup_with(buf_done) struct buf login = BUF_INIT(PROXY_OUT_MAX);
    char address[INET6_ADDRSTRLEN] = "", host[INET6_ADDRSTRLEN + 10];
    int r;

    (void)inet_ntop(talk->target.family, talk->target.bytes, address, sizeof(address));
    (void)snprintf(host, sizeof(host), talk->target.family == AF_INET ? "%s:%u" : "[%s]:%u",
                   address, (unsigned)talk->port);
    talk->step = PROXY_HEAD;
    r = buf_printf(&out, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", host, host);
    if (r == 0 && talk->proxy->user[0]) {
        r = buf_printf(&login, "%s:%s", talk->proxy->user, talk->proxy->password);
        if (r == 0)
            r = buf_add_str(&out, "Proxy-Authorization: Basic ");
        if (r == 0)
            r = base64_encode(&out, login.data, login.len);
        if (r == 0)
            r = buf_add_str(&out, "\r\n");
    }
    if (r == 0)
        r = buf_add_str(&out, "\r\n");
    if (r < 0)
        talk_fail(talk, "its login is too long");
    else
        out_add(talk, out.data, out.len);
}

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

/* "HTTP/1.x NNN", then a blank or the end of the line. Returns the code; 0 if it is none. */
static unsigned http_status(const uint8_t *head)
{
    static const char version[] = "HTTP/1.";
    const uint8_t *code = head + sizeof(version) + 1;

    if (memcmp(head, version, sizeof(version) - 1) != 0 || !is_digit(code[-2]) || code[-1] != ' ' ||
        !is_digit(code[0]) || !is_digit(code[1]) || !is_digit(code[2]) ||
        (code[3] != ' ' && code[3] != '\r'))
        return 0;
    return (unsigned)(code[0] - '0') * 100 + (unsigned)(code[1] - '0') * 10 +
           (unsigned)(code[2] - '0');
}

enum { HTTP_STATUS_BYTES = 13 }; /* "HTTP/1.1 200 " */

static void http_reply(struct proxy_talk *talk)
{
    unsigned status = talk->in_len >= HTTP_STATUS_BYTES ? http_status(talk->in) : 0;

    if (status == 0)
        talk_fail(talk, "malformed reply");
    else if (status >= 200 && status < 300)
        talk->state = PROXY_READY;
    else if (status == 407)
        talk_fail(talk, talk->proxy->user[0] ? "the login was refused (HTTP 407)"
                                             : "it asks for a password (HTTP 407)");
    else
        talk_fail(talk, "it answers HTTP %u", status);
    talk->blames_target = status >= 502 && status <= 504;
}

/* Takes bytes up to the end of the head, and none behind it. */
static size_t http_take(struct proxy_talk *talk, const uint8_t *data, size_t len)
{
    static const char end[] = "\r\n\r\n";
    size_t used = 0;

    while (used < len && talk->state == PROXY_TALKING) {
        if (talk->in_len == sizeof(talk->in)) {
            talk_fail(talk, "the reply is too long");
            break;
        }
        if (data[used] == '\0') {
            talk_fail(talk, "malformed reply");
            break;
        }
        talk->in[talk->in_len++] = data[used++];
        if (talk->in_len >= 4 && memcmp(talk->in + talk->in_len - 4, end, 4) == 0)
            http_reply(talk);
        else if (talk->in_len == HTTP_STATUS_BYTES && http_status(talk->in) == 0)
            talk_fail(talk, "malformed reply"); /* it may never send the end of a head */
    }
    return used;
}

/* --- both --- */

void proxy_talk_start(struct proxy_talk *talk, const struct net_proxy *proxy,
                      const struct net_address *target, uint16_t port)
{
    talk->proxy = proxy;
    talk->target = *target;
    talk->port = port;
    talk->state = PROXY_TALKING;
    talk->blames_target = false;
    talk->reason[0] = '\0';
    talk->in_len = 0;
    out_begin(talk);
    if (proxy->kind == NET_PROXY_HTTP)
        http_request(talk);
    else
        socks_greet(talk);
}

size_t proxy_talk_take(struct proxy_talk *talk, const void *data, size_t len)
{
    const uint8_t *bytes = data;
    size_t used = 0;

    if (talk->step == PROXY_HEAD)
        return talk->state == PROXY_TALKING ? http_take(talk, bytes, len) : 0;
    while (used < len && talk->state == PROXY_TALKING) {
        talk->in[talk->in_len++] = bytes[used++];
        if (talk->in_len < socks_needs(talk))
            continue;
        socks_take(talk);
        talk->in_len = 0;
    }
    return used;
}
