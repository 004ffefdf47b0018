// SPDX-License-Identifier: Apache-2.0
/* Ports of programs in sandboxes: requests on their way in. */
#include "host/port/port.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "e2b/control/start.h"
#include "e2b/core/e2b.h"
#include "e2b/core/metadata.h"
#include "e2b/core/wake.h"
#include "e2b/port/access.h"
#include "e2b/port/header.h"
#include "e2b/port/proxied_request.h"
#include "host/core/reactor.h"
#include "host/sandbox/sandbox.h"
#include "http/exchange.h"
#include "http/limits.h"

enum {
    CONNECT_MS = 10 * 1000,
    HEAD_MAX = 64 * 1024,           /* more than libmicrohttpd lets in */
    HEADERS_MAX = 1024,             /* the same */
    DISCARD_MAX = 64 * 1024 * 1024, /* bytes read of a body without a receiver */
};

/* --- the head --------------------------------------------------------------------------------- */

struct headers {
    struct port_header list[HEADERS_MAX];
    size_t count;
    const struct e2b_request *request;
    bool is_overfull;
    bool has_upgrade, wants_upgrade, is_chunked;
};

static enum MHD_Result header_note(void *context, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    struct headers *headers = context;

    (void)kind;
    if (headers->count == HEADERS_MAX) {
        headers->is_overfull = true;
        return MHD_NO;
    }
    value = value ? value : "";
    if (port_access_is_credential(headers->request, name, value))
        return MHD_YES;
    headers->list[headers->count++] = (struct port_header){ name, value };
    headers->has_upgrade |= strcasecmp(name, MHD_HTTP_HEADER_UPGRADE) == 0;
    headers->wants_upgrade |= strcasecmp(name, MHD_HTTP_HEADER_CONNECTION) == 0 &&
                              port_header_lists(value, MHD_HTTP_HEADER_UPGRADE);
    headers->is_chunked |= strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0;
    return MHD_YES;
}

static const char *mask_of(const struct e2b_request *request)
{
    const char *mask = json_string_value(
        json_object_get(json_object_get(request->metadata, "network"), "maskRequestHost"));

    return mask && *mask ? mask : NULL;
}

static int head_write(struct e2b_request *request, struct proxied_request *proxied, struct buf *out,
                      struct err *err)
{
    cleanup_free struct headers *headers = xcalloc(1, sizeof(*headers));
    struct port_request head = {
        .verb = request->verb,
        .target = request->target,
        .port = request->to.port,
        .mask_host = mask_of(request),
    };

    headers->request = request;
    (void)MHD_get_connection_values(request->connection, MHD_HEADER_KIND, header_note, headers);
    head.headers = headers->list;
    head.header_count = headers->count;
    head.is_chunked = proxied->is_chunked = headers->is_chunked;
    head.is_upgrade = proxied->reply.can_upgrade = headers->has_upgrade && headers->wants_upgrade;
    proxied->reply.is_head = strcmp(request->verb, MHD_HTTP_METHOD_HEAD) == 0;
    if (headers->is_overfull || port_request_write(&head, out) < 0)
        return err_set(err, ERR_INVALID, "the header of the request is not as it should be");
    return 0;
}

/* --- sending ---------------------------------------------------------------------------------- */

/* Reads a reply that arrives while the request is being sent, to avoid a deadlock. */
static int hear_early(struct proxied_request *proxied)
{
    char bytes[16 * 1024];
    ssize_t n = recv(proxied->server_fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return -EPIPE;
    return buf_add(&proxied->early, bytes, (size_t)n);
}

/* Until the server takes more, or -errno when it never will. */
static int await_room(struct proxied_request *proxied)
{
    struct pollfd fds[2] = {
        { .fd = proxied->server_fd, .events = POLLOUT | POLLIN },
        { .fd = proxied->client_fd }, /* which is reset or cut */
    };

    if (poll(fds, 2, -1) < 0)
        return errno == EINTR ? 0 : -errno;
    if (fds[1].revents)
        return -ECANCELED;
    return fds[0].revents & POLLIN ? hear_early(proxied) : 0;
}

/* 0, or -EPIPE when the server takes no more, which may have said why; or another -errno. */
static int send_all(struct proxied_request *proxied, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(proxied->server_fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        int r = 0;

        if (n < 0 && errno == EAGAIN)
            r = await_room(proxied);
        else if (n < 0 && errno != EINTR)
            r = -EPIPE;
        if (r < 0)
            return r;
        data += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int send_piece(struct proxied_request *proxied, const char *data, size_t len)
{
    char head[32];
    int r;

    if (!proxied->is_chunked)
        return send_all(proxied, data, len);
    (void)snprintf(head, sizeof(head), "%zx\r\n", len);
    r = send_all(proxied, head, strlen(head));
    if (r == 0)
        r = send_all(proxied, data, len);
    return r < 0 ? r : send_all(proxied, "\r\n", 2);
}

/* --- the route -------------------------------------------------------------------------------- */

static int dial_once(struct e2b_request *request, struct proxied_request *proxied, struct err *err)
{
    const struct port_patience patience = {
        .deadline_ms = clock_ms() + CONNECT_MS,
        .cancel_fd = -1,
    };
    int r = sandbox_dial(proxied->sandbox, request->to.port, &patience, &proxied->server_fd, err);

    proxied->is_closed = r < 0 && err->kind == ERR_BUSY && err->cause == CAUSE_NONE;
    return r;
}

/* A closed port is not an error of the host, and neither is a sandbox that ends. What the template
 * starts may have ended, and is started again then. */
static int dial(struct e2b_request *request, struct proxied_request *proxied, struct err *err)
{
    struct err ignored = { 0 };
    int r = dial_once(request, proxied, err);

    if (proxied->is_closed && e2b_start_again(request->host, proxied->sandbox, request->metadata,
                                              request->connection_fd, &ignored) > 0)
        r = dial_once(request, proxied, err);
    if (r < 0 && err->kind == ERR_INTERNAL && !e2b_is_active(proxied->sandbox))
        return err_refuse(err, CAUSE_SESSION_DESTROYING, "the sandbox has ended");
    return proxied->is_closed ? 0 : r;
}

static int begin(struct e2b_request *request, struct err *err)
{
    cleanup_with(buf_done) struct buf head = BUF_INIT(HEAD_MAX);
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    struct proxied_request *proxied = xcalloc(1, sizeof(*proxied));
    int r;

    request->state = proxied;
    proxied->sandbox = request->sandbox;
    proxied->resets = request->e2b->resets;
    proxied->server_fd = -EBADF;
    proxied->client_fd = request->connection_fd;
    proxied->early.max = proxied->body.max = PORT_EARLY_MAX;
    sandbox_attach(proxied->sandbox);
    sandbox_get_info(proxied->sandbox, false, &info);
    client_connection_allow(request->exchange->client, PORT_IDLE_MS);
    e2b_reset_add(proxied->resets, &proxied->reset, info.id, proxied->client_fd);
    r = head_write(request, proxied, &head, err);
    port_reply_init(&proxied->reply);
    if (r == 0)
        r = dial(request, proxied, err);
    if (r == 0 && !proxied->is_closed)
        proxied->is_full = send_all(proxied, head.data, head.len) < 0;
    return r;
}

/* Reads and drops a body without a receiver, so that the client gets its reply. */
static void discard(struct proxied_request *proxied, size_t len)
{
    proxied->discarded += len;
    if (proxied->discarded > DISCARD_MAX)
        e2b_connection_reset(proxied->client_fd);
}

static int receive(struct e2b_request *request, const char *data, size_t len, struct err *err)
{
    struct proxied_request *proxied = request->state;
    int r;

    (void)err;
    client_connection_allow(request->exchange->client, PORT_IDLE_MS);
    if (proxied->is_closed || proxied->is_full) {
        discard(proxied, len);
        return 0;
    }
    r = send_piece(proxied, data, len);
    proxied->is_full = r < 0;
    /* It answers more than can be kept, or is not there any more. */
    if (r < 0 && r != -EPIPE)
        e2b_connection_reset(proxied->client_fd);
    return 0;
}

static enum MHD_Result answer(struct e2b_request *request)
{
    struct proxied_request *proxied = request->state;

    if (proxied->is_closed)
        return proxied_request_fail(request, "The sandbox is running but port is not open");
    if (proxied->is_chunked && !proxied->is_full)
        proxied->is_full = send_all(proxied, "0\r\n\r\n", 5) < 0;
    return proxied_request_answer(request, proxied);
}

static void close_proxied(struct e2b_request *request)
{
    struct proxied_request *proxied = request->state;

    e2b_reset_remove(proxied->resets, &proxied->reset);
    sandbox_detach(proxied->sandbox, NULL);
    (void)fd_close(proxied->server_fd);
    port_reply_done(&proxied->reply);
    buf_done(&proxied->early);
    buf_done(&proxied->body);
    free(proxied);
}

static const struct e2b_body_ops body = { begin, receive };

static const struct e2b_route routes[] = {
    { "*", "/*", .answer = answer, .body = &body, .close = close_proxied },
};

const struct e2b_routes e2b_port_routes = { routes, ARRAY_SIZE(routes) };
