// SPDX-License-Identifier: Apache-2.0
#include "client/transport/mcp.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/base64.h"
#include "base/xalloc.h"
#include "client/error.h"
#include "client/transport/handle.h"
#include "client/transport/link.h"
#include "holt.h"

enum {
    HEADERS_MAX = 16 * 1024,
    REPLY_MAX = 16 * 1024 * 1024,
};

enum kind { NOT_KNOWN, WHOLE, EVENTS };

struct mcp_post {
    struct connection *connection;
    struct link *link; /* of the connection, for mcp_post_hang_up */
    struct http_wanted session;
    unsigned status;
    enum kind kind;
    size_t position;  /* offset in the body of the next message */
    struct buf event; /* data of the event that is being read */
    bool is_over;
};

/* Returns whether a header can have the text as it is. */
static bool is_plain(const char *text, size_t len)
{
    bool is_plain = len > 0 && text[0] != ' ' && text[len - 1] != ' ' && text[0] != '=';

    for (size_t i = 0; is_plain && i < len; i++)
        is_plain = text[i] >= ' ' && text[i] <= '~';
    return is_plain;
}

static int name_write(struct buf *headers, const char *name, size_t len)
{
    int r = buf_add_str(headers, "Mcp-Name: ");

    if (r == 0 && is_plain(name, len))
        r = buf_add(headers, name, len);
    else if (r == 0)
        r = buf_add_str(headers, "=?base64?") | base64_encode(headers, name, len) |
            buf_add_str(headers, "?=");
    return r == 0 ? buf_add_str(headers, "\r\n") : r;
}

static int headers_write(struct buf *headers, const struct mcp_post_request *request)
{
    int r = buf_add_str(headers, "Accept: application/json, text/event-stream\r\n");

    if (r == 0 && request->session)
        r = buf_printf(headers, "Mcp-Session-Id: %s\r\n", request->session);
    if (r == 0 && request->version && is_plain(request->version, strlen(request->version)))
        r = buf_printf(headers, "MCP-Protocol-Version: %s\r\n", request->version);
    if (r == 0 && request->method && is_plain(request->method, strlen(request->method)))
        r = buf_printf(headers, "Mcp-Method: %s\r\n", request->method);
    return r == 0 && request->name ? name_write(headers, request->name, request->name_len) : r;
}

int mcp_post_open(struct holt *holt, const struct mcp_post_request *request, struct mcp_post **ret,
                  struct holt_error *error)
{
    cleanup_with(buf_done) struct buf headers = BUF_INIT(HEADERS_MAX);
    struct mcp_post *post = xcalloc(1, sizeof(*post));
    struct http_request http_request = {
        .verb = request->verb,
        .content_type = "application/json",
        .body = request->body,
        .len = request->len,
        .reply_max = REPLY_MAX,
        .wanted = &post->session,
        .deadline = HOLT_NO_DEADLINE,
    };

    post->session.name = "Mcp-Session-Id";
    post->event.max = REPLY_MAX;
    if (headers_write(&headers, request) < 0) {
        free(post);
        return error_set(error, "invalid_argument", "the name in the message is too long");
    }
    http_request.headers = headers.data;
    if (handle_send(holt, request->path, &http_request, &post->connection, error) < 0) {
        free(post);
        return -1;
    }
    post->link = link_ref(post->connection->http.link);
    *ret = post;
    return 0;
}

int mcp_post_wait(struct mcp_post *post, struct holt_error *error)
{
    return http_read_head(&post->connection->http, &post->status, error);
}

void mcp_post_hang_up(struct mcp_post *post)
{
    link_hang_up(post->link);
}

unsigned mcp_post_status(const struct mcp_post *post)
{
    return post->status;
}

const char *mcp_post_session(const struct mcp_post *post)
{
    return post->session.value;
}

/* Parses one line of an event stream. Returns whether it ends an event. Only data fields are used;
 * several data lines are joined to one line of JSON. */
static bool line_take(struct buf *event, const char *line, size_t len)
{
    static const char data[] = "data:";

    if (len > 0 && line[len - 1] == '\r')
        len--;
    if (len == 0)
        return event->len > 0;
    if (len < strlen(data) || memcmp(line, data, strlen(data)) != 0)
        return false;
    line += strlen(data);
    len -= strlen(data);
    if (len > 0 && *line == ' ') {
        line++;
        len--;
    }
    (void)buf_add(event, line, len);
    return false;
}

/* Returns whether an event is complete. */
static bool event_gather(struct mcp_post *post)
{
    const struct buf *body = &post->connection->http.body;

    while (post->position < body->len) {
        const char *line = body->data + post->position;
        const char *end = memchr(line, '\n', body->len - post->position);

        if (!end)
            return false;
        post->position += (size_t)(end - line) + 1;
        if (line_take(&post->event, line, (size_t)(end - line)))
            return true;
    }
    return false;
}

static int event_next(struct mcp_post *post, const char **ret, size_t *ret_len,
                      struct holt_error *error)
{
    struct http *http = &post->connection->http;
    int r;

    buf_clear(&post->event);
    while (!event_gather(post)) {
        buf_consume(&http->body, post->position);
        post->position = 0;
        r = http_read_body(http, error);
        if (r <= 0)
            return r;
    }
    *ret = post->event.data;
    *ret_len = post->event.len;
    return 1;
}

/* Reads a reply that is one JSON message; an event stream never begins like JSON. Returns 1, 0 if
 * it is empty, or -1. */
static int kind_find(struct mcp_post *post, struct holt_error *error)
{
    const struct buf *body = &post->connection->http.body;
    int r = 1;

    while (r > 0 && body->len == 0)
        r = http_read_body(&post->connection->http, error);
    if (body->len > 0)
        post->kind = body->data[0] == '{' || body->data[0] == '[' ? WHOLE : EVENTS;
    return r < 0 ? -1 : body->len > 0;
}

int mcp_post_next(struct mcp_post *post, const char **ret, size_t *ret_len,
                  struct holt_error *error)
{
    const struct buf *body = &post->connection->http.body;
    int r = 1;

    if (post->is_over)
        return 0;
    if (post->kind == NOT_KNOWN)
        r = kind_find(post, error);
    if (r <= 0 || post->kind == EVENTS)
        return r <= 0 ? r : event_next(post, ret, ret_len, error);
    if (connection_read_all(post->connection, error) < 0)
        return -1;
    post->is_over = true;
    *ret = body->data;
    *ret_len = body->len;
    return 1;
}

void mcp_post_close(struct mcp_post *post)
{
    if (!post)
        return;
    handle_give(post->connection);
    link_unref(post->link);
    buf_done(&post->event);
    free(post);
}
