// SPDX-License-Identifier: Apache-2.0
/* Ports of programs in sandboxes: answers on their way out. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "e2b/core/e2b.h"
#include "e2b/core/wake.h"
#include "e2b/port/header.h"
#include "e2b/port/proxied_request.h"
#include "e2b/port/pump.h"
#include "http/exchange.h"
#include "http/limits.h"
#include "http/upgraded.h"

enum { BLOCK_BYTES = 32 * 1024 };

enum MHD_Result proxied_request_fail(struct e2b_request *request, const char *message)
{
    return e2b_reply_json(request, MHD_HTTP_BAD_GATEWAY,
                          json_pack("{s:s, s:s, s:i, s:i}", "sandboxId", request->to.sandbox,
                                    "message", message, "port", (int)request->to.port, "code",
                                    MHD_HTTP_BAD_GATEWAY));
}

/* --- receiving -------------------------------------------------------------------------------- */

/* Whether the server has not ended what it said but was ended: it is killed with its sandbox, which
 * has another state by then. */
static bool is_cut(void *context)
{
    struct proxied_request *proxied = context;

    return !e2b_is_active(proxied->sandbox);
}

/* Whether the token of the client has ended. */
static bool is_revoked(void *context)
{
    const struct e2b_request *request = context;
    struct err err = { 0 };

    return exchange_is_stopped(request->exchange, &err) && err.kind == ERR_UNAUTHENTICATED;
}

/* An orderly end closes one half of the server's connection; what closes it whole is the end of the
 * machine, or a reset. */
static ssize_t receive_end(struct proxied_request *proxied)
{
    struct pollfd wait = { .fd = proxied->server_fd };
    bool is_hung = poll(&wait, 1, 0) > 0 && wait.revents & (POLLHUP | POLLERR);

    return is_hung || is_cut(proxied) ? -ECONNRESET : 0;
}

/* Waits for bytes of the server: how many, 0 at their end, or -errno. */
static ssize_t receive(struct proxied_request *proxied, char *data, size_t size)
{
    for (;;) {
        struct pollfd fds[2] = {
            { .fd = proxied->server_fd, .events = POLLIN },
            { .fd = proxied->client_fd, .events = POLLRDHUP },
        };
        ssize_t n = recv(proxied->server_fd, data, size, MSG_DONTWAIT);

        if (n > 0)
            return n;
        if (n == 0)
            return receive_end(proxied);
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return -errno;
        if (fds[1].revents)
            return -ECANCELED;
    }
}

/* Does the same, starting with the bytes received before. */
static ssize_t take(struct proxied_request *proxied, char *data, size_t size)
{
    size_t len = proxied->early.len < size ? proxied->early.len : size;

    if (len == 0)
        return receive(proxied, data, size);
    memcpy(data, proxied->early.data, len);
    buf_consume(&proxied->early, len);
    return (ssize_t)len;
}

/* Takes bytes and decodes them in their place: how many are left, which may be none; or -errno. */
static ssize_t take_body(struct proxied_request *proxied, char *data, size_t size)
{
    ssize_t n = take(proxied, data, size);

    return n < 0 ? n : port_reply_feed(&proxied->reply, data, (size_t)n);
}

static int read_head(struct proxied_request *proxied)
{
    char data[BLOCK_BYTES];

    while (!proxied->reply.has_head) {
        ssize_t n = take_body(proxied, data, sizeof(data));

        if (n < 0)
            return (int)n;
        if (buf_add(&proxied->body, data, (size_t)n) < 0)
            return -ENOBUFS;
    }
    return 0;
}

/* --- the answer ------------------------------------------------------------------------------- */

/* The signature is libmicrohttpd's. */
static ssize_t read_some(void *context, uint64_t position, char *data, size_t size)
{
    struct e2b_request *request = context;
    struct proxied_request *proxied = request->state;
    size_t len = proxied->body.len < size ? proxied->body.len : size;
    ssize_t n = 0;

    (void)position;
    client_connection_allow(request->exchange->client, PORT_IDLE_MS);
    if (len > 0) {
        memcpy(data, proxied->body.data, len);
        buf_consume(&proxied->body, len);
        return (ssize_t)len;
    }
    while (n == 0 && !proxied->reply.is_complete)
        n = take_body(proxied, data, size);
    if (n > 0 && is_revoked(request))
        n = -ECANCELED;
    if (n > 0)
        return n;
    if (n == 0)
        return MHD_CONTENT_READER_END_OF_STREAM;
    e2b_connection_reset(proxied->client_fd);
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static bool is_named(const struct port_reply *reply, const char *name)
{
    for (size_t i = 0; i < reply->header_count; i++)
        if (strcasecmp(port_reply_name(reply, i), MHD_HTTP_HEADER_CONNECTION) == 0 &&
            port_header_lists(port_reply_value(reply, i), name))
            return true;
    return false;
}

/* libmicrohttpd writes the framing headers of this connection itself. */
static bool stays(const struct port_reply *reply, const char *name)
{
    if (reply->is_upgraded && strcasecmp(name, MHD_HTTP_HEADER_UPGRADE) == 0)
        return false;
    return port_header_is_hop(name) || strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0 ||
           is_named(reply, name);
}

static void add_headers(struct MHD_Response *response, const struct port_reply *reply)
{
    cleanup_with(buf_done) struct buf value = BUF_INIT(PORT_REPLY_TEXT_MAX);

    for (size_t i = 0; i < reply->header_count; i++)
        if (!stays(reply, port_reply_name(reply, i)) &&
            port_header_passes(port_reply_name(reply, i), port_reply_value(reply, i), &value))
            (void)MHD_add_response_header(response, port_reply_name(reply, i),
                                          value.data ? value.data : "");
}

static uint64_t size_of(const struct port_reply *reply)
{
    if (reply->length != PORT_REPLY_UNTIL_END)
        return reply->length;
    if (reply->status == MHD_HTTP_NO_CONTENT || reply->status == MHD_HTTP_NOT_MODIFIED)
        return 0;
    return MHD_SIZE_UNKNOWN;
}

/* --- other protocols -------------------------------------------------------------------------- */

/* Has the connection's thread to itself. The parameters are libmicrohttpd's. */
// NOLINTNEXTLINE(readability-function-size)
static void on_upgrade(void *cls, struct MHD_Connection *connection, void *slot, const char *early,
                       size_t early_len, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
    struct e2b_request *request = cls;
    struct proxied_request *proxied = request->state;
    struct upgraded_connections *upgraded = request->exchange->listener->upgraded;
    struct upgraded_connection session = { .fd = fd };
    const struct port_side client = {
        .fd = fd,
        .early = early,
        .early_len = early_len,
        .is_over = is_revoked,
        .context = request,
    };
    const struct port_side server = {
        .fd = proxied->server_fd,
        .early = proxied->body.data,
        .early_len = proxied->body.len,
        .is_cut = is_cut,
        .context = proxied,
    };

    (void)connection, (void)slot;
    client_connection_allow(request->exchange->client, CONNECTION_FOREVER);
    upgraded_add(upgraded, &session);
    if (port_pump(&client, &server) < 0)
        e2b_connection_reset(fd);
    upgraded_remove(upgraded, &session);
    (void)MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
}

/* --- replies ---------------------------------------------------------------------------------- */

static enum MHD_Result fail(struct e2b_request *request, struct proxied_request *proxied, int r)
{
    if (r == -ECANCELED)
        return MHD_NO;
    if (is_cut(proxied))
        return e2b_reply_gone(request);
    return proxied_request_fail(request, r == -EBADMSG
                                             ? "The server at the port does not answer in HTTP"
                                             : "The server at the port has closed the connection");
}

enum MHD_Result proxied_request_answer(struct e2b_request *request, struct proxied_request *proxied)
{
    const struct port_reply *reply = &proxied->reply;
    struct MHD_Response *response;
    enum MHD_Result result;
    int r;

    client_connection_allow(request->exchange->client, PORT_IDLE_MS);
    r = read_head(proxied);
    if (r < 0)
        return fail(request, proxied, r);
    if (reply->is_upgraded)
        response = MHD_create_response_for_upgrade(on_upgrade, request);
    else
        response = MHD_create_response_from_callback(size_of(reply), BLOCK_BYTES, read_some,
                                                     request, NULL);
    if (!response)
        return MHD_NO;
    add_headers(response, reply);
    result = e2b_reply_response(request, reply->status, response);
    request->outcome = ERR_NONE; /* whatever the server says: it was passed on */
    return result;
}
