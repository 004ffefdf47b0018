// SPDX-License-Identifier: Apache-2.0
#include "client/transport/http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "client/error.h"
#include "client/transport/deadline.h"
#include "client/transport/link.h"
#include "holt.h"

enum {
    RECEIVE_SIZE = 64 * 1024,
    REQUEST_HEAD_MAX = 8 * 1024,
};

static bool is_upgrade(const struct http_parser *parser)
{
    return parser->status_code == HTTP_STATUS_SWITCHING_PROTOCOLS;
}

/* Interim replies such as 100 Continue precede the reply. */
static bool is_interim(const struct http_parser *parser)
{
    return parser->status_code / 100 == 1 && !is_upgrade(parser);
}

/* Appends to a text of this capacity; a text that is too long becomes empty. */
static void text_add(char *text, size_t size, size_t *len, const char *data, size_t more)
{
    if (*len + more < size) {
        memcpy(text + *len, data, more);
        text[*len + more] = '\0';
    } else {
        text[0] = '\0';
    }
    *len += more;
}

static int on_field(struct http_parser *parser, const char *data, size_t len)
{
    struct http *http = parser->data;

    if (http->has_value)
        http->field_len = 0;
    http->has_value = false;
    text_add(http->field, sizeof(http->field), &http->field_len, data, len);
    return 0;
}

static int on_value(struct http_parser *parser, const char *data, size_t len)
{
    struct http *http = parser->data;
    struct http_wanted *wanted = http->wanted;

    http->has_value = true;
    if (wanted && strcasecmp(wanted->name, http->field) == 0)
        text_add(wanted->value, sizeof(wanted->value), &wanted->len, data, len);
    return 0;
}

static int on_headers(struct http_parser *parser)
{
    struct http *http = parser->data;

    http->has_head = !is_interim(parser);
    if (http->has_head)
        http->wanted = NULL; /* the body is complete; a trailer may follow */
    return 0;
}

static int on_body(struct http_parser *parser, const char *data, size_t len)
{
    struct http *http = parser->data;

    http->is_overfull = buf_add(&http->body, data, len) < 0;
    return http->is_overfull;
}

static int on_complete(struct http_parser *parser)
{
    struct http *http = parser->data;

    if (is_interim(parser))
        return 0;
    http->is_complete = true;
    http->is_upgraded = is_upgrade(parser);
    http->can_reuse = !http->is_upgraded && http_should_keep_alive(parser);
    http_parser_pause(parser, 1);
    return 0;
}

static const struct http_parser_settings settings = {
    .on_header_field = on_field,
    .on_header_value = on_value,
    .on_headers_complete = on_headers,
    .on_body = on_body,
    .on_message_complete = on_complete,
};

void http_init(struct http *http, struct link *link)
{
    *http = (struct http){
        .link = link,
        .deadline = HOLT_NO_DEADLINE,
        .is_complete = true,
        .can_reuse = true,
    };
}

void http_done(struct http *http)
{
    link_unref(http->link);
    http->link = NULL;
    buf_done(&http->body);
}

bool http_is_idle(const struct http *http)
{
    return http->link && http->is_complete && http->can_reuse && link_is_quiet(http->link);
}

static void begin_reply(struct http *http, size_t reply_max)
{
    http_parser_init(&http->parser, HTTP_RESPONSE);
    http->parser.data = http;
    buf_clear(&http->body);
    http->body.max = reply_max;
    http->has_head = http->is_complete = http->can_reuse = http->is_overfull = false;
    http->is_upgraded = false;
    http->field_len = 0;
    http->has_value = false;
}

static int write_head(struct buf *head, const struct http_request *request)
{
    int left = deadline_left(request->deadline);
    int r = buf_printf(head,
                       "%s /%s HTTP/1.1\r\n"
                       "Host: %s\r\n"
                       "User-Agent: libholt/" HOLT_VERSION "\r\n"
                       "Content-Type: %s\r\n"
                       "Connect-Protocol-Version: 1\r\n",
                       request->verb ? request->verb : "POST", request->path, request->authority,
                       request->content_type);

    if (r == 0)
        r = request->is_chunked ? buf_add_str(head, "Transfer-Encoding: chunked\r\n")
                                : buf_printf(head, "Content-Length: %zu\r\n", request->len);
    if (r == 0 && left >= 0)
        r = buf_printf(head, "Connect-Timeout-Ms: %d\r\n", left > 0 ? left : 1);
    if (r == 0 && request->token)
        r = buf_printf(head, "Authorization: Bearer %s\r\n", request->token);
    if (r == 0 && request->upgrade)
        r = buf_printf(head, "Connection: Upgrade\r\nUpgrade: %s\r\n", request->upgrade);
    if (r == 0 && request->headers)
        r = buf_add_str(head, request->headers);
    return r < 0 ? r : buf_add_str(head, "\r\n");
}

static int send_parts(struct http *http, struct iovec *parts, size_t count,
                      struct holt_error *error)
{
    int r = link_send(http->link, parts, count, http->deadline);

    if (r == -ETIMEDOUT)
        return error_set(error, "deadline_exceeded", "timed out while sending the request");
    if (r < 0 && r != -EPIPE && r != -ECONNRESET)
        return error_set(error, "unavailable", "send to the daemon: %s", strerror(-r));
    return 0;
}

int http_send(struct http *http, const struct http_request *request, struct holt_error *error)
{
    cleanup_with(buf_done) struct buf head = BUF_INIT(REQUEST_HEAD_MAX);
    struct iovec parts[2];

    begin_reply(http, request->reply_max);
    http->can_upgrade = request->upgrade != NULL;
    http->wanted = request->wanted;
    http->deadline = request->deadline;
    if (!http->link)
        return error_set(error, "unavailable", "there is no connection");
    if (write_head(&head, request) < 0)
        return error_set(error, "invalid_argument", "the request's headers are too long");
    parts[0] = (struct iovec){ .iov_base = head.data, .iov_len = head.len };
    parts[1] =
        (struct iovec){ .iov_base = (void *)(uintptr_t)request->body, .iov_len = request->len };
    return send_parts(http, parts, ARRAY_SIZE(parts), error);
}

int http_send_chunk(struct http *http, const void *data, size_t len, struct holt_error *error)
{
    static const char end[] = "\r\n";
    char head[32];
    struct iovec parts[] = {
        { .iov_base = head },
        { .iov_base = (void *)(uintptr_t)data, .iov_len = len },
        { .iov_base = (void *)(uintptr_t)end, .iov_len = strlen(end) },
    };

    parts[0].iov_len = (size_t)snprintf(head, sizeof(head), "%zx\r\n", len);
    return send_parts(http, parts, ARRAY_SIZE(parts), error);
}

int http_feed(struct http *http, const char *data, size_t len, struct holt_error *error)
{
    size_t taken = http_parser_execute(&http->parser, &settings, data, len);

    if (http->is_upgraded && !http->can_upgrade)
        return error_set(error, "internal", "the daemon switched protocols without a request");
    if (http->is_upgraded) {
        if (buf_add(&http->body, data + taken, len - taken) < 0)
            return error_set(error, "resource_exhausted", "out of memory for the reply");
        return 0;
    }
    if (http->is_complete) {
        /* No request is pending, so unexpected bytes are an error. */
        http->can_reuse = http->can_reuse && taken == len;
        return 0;
    }
    if (http->is_overfull)
        return error_set(error, "resource_exhausted", "the daemon's reply is longer than %zu bytes",
                         http->body.max);
    if (len == 0)
        return error_set(error, "unavailable", "the daemon closed the connection %s",
                         http->has_head ? "in the middle of its reply" : "without a reply");
    if (HTTP_PARSER_ERRNO(&http->parser) != HPE_OK || taken != len)
        return error_set(error, "internal", "the daemon's reply is not HTTP: %s",
                         http_errno_description(HTTP_PARSER_ERRNO(&http->parser)));
    return 0;
}

static int receive(struct http *http, struct holt_error *error)
{
    char data[RECEIVE_SIZE];
    ssize_t n = link_receive(http->link, data, sizeof(data), http->deadline);

    if (n == -ETIMEDOUT)
        return error_set(error, "deadline_exceeded", "the daemon did not reply in time");
    if (n < 0 && n != -ECONNRESET)
        return error_set(error, "unavailable", "receive from the daemon: %s", strerror((int)-n));
    return http_feed(http, data, n < 0 ? 0 : (size_t)n, error);
}

int http_read_head(struct http *http, unsigned *ret_status, struct holt_error *error)
{
    while (!http->has_head)
        if (receive(http, error) < 0)
            return -1;
    *ret_status = http->parser.status_code;
    return 0;
}

int http_read_body(struct http *http, struct holt_error *error)
{
    if (http->is_complete)
        return 0;
    return receive(http, error) < 0 ? -1 : 1;
}
