/* A client of the HTTP server for its tests: raw bytes out, raw bytes in. */
#pragma once

#include <errno.h>
#include <stdatomic.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/xalloc.h"
#include "check.h"
#include "http/connect.h"
#include "wire/envelope.h"

enum { REPLY_BYTES_MAX = 64 << 20 };

static char socket_path[64]; /* of the server */

static int local_connect(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    return fd;
}

static void text_send(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

        if (n <= 0)
            return; /* refused before its end, which some tests want */
        text += n;
        len -= (size_t)n;
    }
}

static void reply_read(int fd, struct buf *reply)
{
    char piece[65536];
    ssize_t n;

    while ((n = recv(fd, piece, sizeof(piece), 0)) > 0)
        CHECK(buf_add(reply, piece, (size_t)n) == 0);
}

struct request {
    const char *verb;
    const char *path;
    const char *type;
    const char *headers;
    const char *body;
    size_t len;
};

static void request_send(int fd, const struct request *request)
{
    cleanup_free char *head = xasprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\n"
                                        "Content-Length: %zu\r\n%s\r\n",
                                        request->verb, request->path, request->type, request->len,
                                        request->headers ? request->headers : "");

    text_send(fd, head, strlen(head));
    text_send(fd, request->body, request->len);
}

static void exchange_on(int fd, const struct request *request, struct buf *reply)
{
    request_send(fd, request);
    CHECK(shutdown(fd, SHUT_WR) == 0 || errno == ENOTCONN);
    reply_read(fd, reply);
    CHECK(close(fd) == 0);
}

static void call(const char *method, const char *body, struct buf *reply)
{
    cleanup_free char *path = xasprintf("/holt.v1.%s", method);
    struct request request = { "POST", path,        CONNECT_UNARY_TYPE, "Connection: close\r\n",
                               body,   strlen(body) };

    buf_clear(reply);
    exchange_on(local_connect(), &request, reply);
}

static void expect(const char *method, const char *body, const char *status, const char *content)
{
    cleanup_with(buf_done) struct buf reply = BUF_INIT(REPLY_BYTES_MAX);

    call(method, body, &reply);
    CHECK(reply.len > 0 && strncmp(reply.data + 9, status, 3) == 0, "(%s)", reply.data);
    CHECK(strstr(reply.data, content), "(%s)", reply.data);
}

/* Undoes chunked transfer coding, in place; returns where the body starts. */
static char *chunks_join(struct buf *reply, size_t *ret_len)
{
    char *body = strstr(reply->data, "\r\n\r\n");
    char *from, *to;

    CHECK(body, "(%s)", reply->data);
    body += 4;
    *ret_len = reply->len - (size_t)(body - reply->data);
    if (!strcasestr(reply->data, "Transfer-Encoding: chunked"))
        return body;
    from = to = body;
    for (;;) {
        char *end;
        size_t len = strtoul(from, &end, 16);

        CHECK(end != from && memcmp(end, "\r\n", 2) == 0);
        if (len == 0)
            break;
        memmove(to, end + 2, len);
        to += len;
        from = end + 2 + len + 2;
    }
    *ret_len = (size_t)(to - body);
    return body;
}

/* The messages of a stream, one a line, the end with "end: " in front. */
static void messages_list(struct buf *reply, struct buf *lines)
{
    struct envelope envelope = { 0 };
    size_t len;
    char *at;

    CHECK(reply->len > 12 && strncmp(reply->data, "HTTP/1.1 200", 12) == 0, "(%s)", reply->data);
    CHECK(strstr(reply->data, "Content-Type: application/connect+json"));
    at = chunks_join(reply, &len);
    buf_clear(lines);
    while (len > 0) {
        long size = envelope_parse(at, len, &envelope);

        CHECK(size > 0);
        CHECK(buf_printf(lines, "%s%.*s\n", envelope.is_end ? "end: " : "", (int)envelope.len,
                         envelope.payload) == 0);
        at += size;
        len -= (size_t)size;
    }
    CHECK(envelope.is_end);
}

static void stream(const char *method, const char *message, struct buf *lines)
{
    cleanup_with(buf_done) struct buf reply = BUF_INIT(REPLY_BYTES_MAX),
                                      body = BUF_INIT(REPLY_BYTES_MAX);
    cleanup_free char *path = xasprintf("/holt.v1.%s", method);
    struct request request = {
        "POST", path, CONNECT_STREAM_TYPE, "Connection: close\r\n", NULL, 0
    };
    int fd = local_connect();

    CHECK(envelope_add(&body, message, strlen(message)) == 0);
    request.body = body.data;
    request.len = body.len;
    request_send(fd, &request);
    reply_read(fd, &reply);
    CHECK(close(fd) == 0);
    messages_list(&reply, lines);
}

static void counter_wait(const atomic_int *counter, int wanted)
{
    for (int i = 0; i < 60000 && *counter != wanted; i++)
        (void)usleep(5000);
    CHECK(*counter == wanted, "(%d)", *counter);
}

static int stream_open(const char *path, const char *message)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(4096);
    struct request request = { "POST", path, CONNECT_STREAM_TYPE, NULL, NULL, 0 };
    int fd = local_connect();

    CHECK(envelope_add(&body, message, strlen(message)) == 0);
    request.body = body.data;
    request.len = body.len;
    request_send(fd, &request);
    return fd;
}

static void reply_wait(int fd, struct buf *reply, const char *content)
{
    size_t len = strlen(content);
    char piece[4096];

    while (reply->len < len || !memmem(reply->data, reply->len, content, len)) {
        ssize_t n = recv(fd, piece, sizeof(piece), 0);

        CHECK(n > 0);
        CHECK(buf_add(reply, piece, (size_t)n) == 0);
    }
}
