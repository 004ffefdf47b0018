// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "client/error.h"
#include "client/transport/handle.h"
#include "client/transport/link.h"
#include "holt.h"
#include "wire/envelope.h"
#include "wire/raw.h"

enum {
    RAW_RECEIVE = 256 * 1024,
    /* The longest incomplete envelope, and what one receive can add to it. */
    WAITING_MAX = ENVELOPE_HEADER_SIZE + ENVELOPE_LARGE_MAX + 64 * 1024,
};

_Static_assert(RAW_RECEIVE >= RAW_HEADER_SIZE + RAW_WHOLE_MAX, "one frame is received whole");

struct holt_stream {
    struct connection *connection;
    size_t position; /* offset in the body, after the latest message */
    struct raw_parser parser;
    bool has_status;
    bool is_over;
};

static int stream_open(struct holt *holt, const char *method, const char *request,
                       struct http_request *http_request, struct holt_stream **ret,
                       struct holt_error *error)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(ENVELOPE_HEADER_SIZE + ENVELOPE_LARGE_MAX);
    struct connection *connection;
    struct holt_stream *stream;

    if (envelope_add_large(&body, request, strlen(request)) < 0)
        return error_set(error, "invalid_argument", "the request is longer than %d bytes",
                         ENVELOPE_LARGE_MAX);
    http_request->content_type = "application/connect+json";
    http_request->reply_max = WAITING_MAX;
    http_request->body = body.data;
    http_request->len = body.len;
    if (handle_send(holt, method, http_request, &connection, error) < 0)
        return -1;
    stream = xcalloc(1, sizeof(*stream));
    stream->connection = connection;
    *ret = stream;
    return 0;
}

int holt_stream_open(struct holt *holt, const char *method, const char *request, int64_t deadline,
                     struct holt_stream **ret, struct holt_error *error)
{
    struct http_request http_request = { .deadline = deadline };

    return stream_open(holt, method, request, &http_request, ret, error);
}

int holt_stream_open_raw(struct holt *holt, const char *method, const char *request,
                         int64_t deadline, struct holt_stream **ret, struct holt_error *error)
{
    struct http_request http_request = { .deadline = deadline, .upgrade = RAW_PROTOCOL };

    return stream_open(holt, method, request, &http_request, ret, error);
}

/* Parses the envelope at the position; returns as envelope_parse_up_to. */
static ssize_t parse_waiting(const struct holt_stream *stream, struct envelope *ret)
{
    const struct buf *body = &stream->connection->http.body;

    return body->len > stream->position
               ? envelope_parse_up_to(body->data + stream->position, body->len - stream->position,
                                      ENVELOPE_LARGE_MAX, ret)
               : 0;
}

static int read_status(struct holt_stream *stream, struct holt_error *error)
{
    struct http *http = &stream->connection->http;
    unsigned status;

    if (http_read_head(http, &status, error) < 0)
        return -1;
    stream->has_status = true;
    if (status == HTTP_STATUS_OK || http->is_upgraded)
        return 0;
    stream->is_over = true;
    if (connection_read_all(stream->connection, error) < 0)
        return -1;
    error_from_reply(error, status, http->body.data, http->body.len);
    return -1;
}

static int read_more(struct holt_stream *stream, struct holt_error *error)
{
    struct http *http = &stream->connection->http;
    int r;

    buf_consume(&http->body, stream->position);
    stream->position = 0;
    r = http_read_body(http, error);
    if (r == 0)
        return error_set(error, "unavailable", "the daemon closed the stream early");
    return r < 0 ? -1 : 0;
}

static int end(struct holt_stream *stream, const struct envelope *last, struct holt_error *error)
{
    /* Only the final HTTP chunk is left, so this does not wait. */
    stream->is_over = true;
    stream->connection->has_rest = !stream->connection->http.is_complete;
    if (error_from_end(error, last->payload, last->len) == 0)
        return 0;
    connection_failed(stream->connection, error);
    return -1;
}

static int envelope_next(struct holt_stream *stream, const char **ret_message, size_t *ret_len,
                         struct holt_error *error)
{
    struct envelope envelope;
    ssize_t size;

    while ((size = parse_waiting(stream, &envelope)) == 0)
        if (read_more(stream, error) < 0)
            return -1;
    if (size < 0)
        return error_set(error, "internal", "cannot read the daemon's stream: %s",
                         strerror((int)-size));
    stream->position += (size_t)size;
    if (envelope.is_end)
        return end(stream, &envelope, error);
    *ret_message = envelope.payload;
    *ret_len = envelope.len;
    return 1;
}

/* Parses the frame at the position; returns as raw_next. */
static ssize_t raw_waiting(struct holt_stream *stream, struct raw_piece *ret)
{
    const struct buf *body = &stream->connection->http.body;

    return body->len > stream->position ? raw_next(&stream->parser, body->data + stream->position,
                                                   body->len - stream->position, ret)
                                        : 0;
}

static int raw_read_more(struct holt_stream *stream, struct holt_error *error)
{
    struct http *http = &stream->connection->http;
    struct buf *body = &http->body;
    ssize_t n;

    buf_consume(body, stream->position);
    stream->position = 0;
    if (buf_reserve(body, RAW_RECEIVE) < 0)
        return error_set(error, "resource_exhausted", "no memory for the stream");
    n = link_receive(http->link, body->data + body->len, RAW_RECEIVE, http->deadline);
    if (n == -ETIMEDOUT)
        return error_set(error, "deadline_exceeded", "the stream did not end in time");
    if (n <= 0)
        return error_set(error, "unavailable", "the daemon closed the stream early");
    body->len += (size_t)n;
    return 0;
}

static int piece_next(struct holt_stream *stream, struct raw_piece *ret, struct holt_error *error)
{
    ssize_t size;

    while ((size = raw_waiting(stream, ret)) == 0)
        if (raw_read_more(stream, error) < 0)
            return -1;
    if (size < 0)
        return error_set(error, "internal", "cannot read the daemon's stream: %s",
                         strerror((int)-size));
    stream->position += (size_t)size;
    if (ret->type != RAW_END)
        return 1;
    stream->is_over = true;
    return error_from_end(error, ret->data, ret->len);
}

/* Waits until something can be read. Returns 0 or -1. */
static int begin_next(struct holt_stream *stream, struct holt_error *error)
{
    if (stream->is_over)
        return error_set(error, "failed_precondition", "the stream is over");
    return stream->has_status ? 0 : read_status(stream, error);
}

int holt_stream_next(struct holt_stream *stream, const char **ret_message, size_t *ret_len,
                     struct holt_error *error)
{
    if (begin_next(stream, error) < 0)
        return -1;
    if (stream->connection->http.is_upgraded)
        return error_set(error, "failed_precondition", "the stream is raw");
    return envelope_next(stream, ret_message, ret_len, error);
}

int holt_stream_next_raw(struct holt_stream *stream, struct holt_piece *ret,
                         struct holt_error *error)
{
    struct raw_piece piece;
    int r;

    if (begin_next(stream, error) < 0)
        return -1;
    ret->kind = HOLT_EVENT;
    if (!stream->connection->http.is_upgraded)
        return envelope_next(stream, &ret->data, &ret->len, error);
    r = piece_next(stream, &piece, error);
    if (r <= 0)
        return r;
    ret->data = piece.data;
    ret->len = piece.len;
    if (piece.type != RAW_EVENT)
        ret->kind = piece.type == RAW_STDOUT ? HOLT_STDOUT : HOLT_STDERR;
    return 1;
}

/* Returns whether the next call has to receive first. */
static bool is_waiting(const struct holt_stream *stream)
{
    const struct http *http = &stream->connection->http;
    struct raw_parser parser = stream->parser;
    struct raw_piece piece;
    struct envelope envelope;

    if (!http->is_upgraded)
        return !http->is_complete && parse_waiting(stream, &envelope) == 0;
    return !stream->is_over && (http->body.len == stream->position ||
                                raw_next(&parser, http->body.data + stream->position,
                                         http->body.len - stream->position, &piece) == 0);
}

int holt_stream_fd(const struct holt_stream *stream)
{
    return is_waiting(stream) ? link_poll_fd(stream->connection->http.link) : -1;
}

void holt_stream_close(struct holt_stream *stream)
{
    struct http *http;

    if (!stream)
        return;
    http = &stream->connection->http;
    /* An input may hold a reference to the link, so dropping ours would not close it. */
    if (http->is_upgraded)
        link_hang_up(http->link);
    handle_give(stream->connection);
    free(stream);
}

struct holt_input {
    struct link *link;
    bool is_broken; /* half a frame was sent */
};

int holt_input_open(const struct holt_stream *stream, struct holt_input **ret,
                    struct holt_error *error)
{
    const struct http *http = &stream->connection->http;
    struct holt_input *input;

    if (!http->is_upgraded)
        return error_set(error, "unimplemented",
                         "the stream carries no input: the daemon, or a proxy before it, does not "
                         "support 'Upgrade: " RAW_PROTOCOL "'");
    input = xcalloc(1, sizeof(*input));
    input->link = link_ref(http->link);
    *ret = input;
    return 0;
}

static int input_put(struct holt_input *input, enum raw_type type, const char *data, size_t len,
                     int64_t deadline)
{
    unsigned char header[RAW_HEADER_SIZE];
    struct iovec parts[] = {
        { .iov_base = header, .iov_len = sizeof(header) },
        { .iov_base = (void *)(uintptr_t)data, .iov_len = len },
    };
    int r;

    if (input->is_broken)
        return -EPIPE;
    raw_header(header, type, len);
    r = link_send(input->link, parts, ARRAY_SIZE(parts), deadline);
    input->is_broken = r < 0;
    return r;
}

int holt_input_send(struct holt_input *input, const void *data, size_t len, bool is_eof,
                    int64_t deadline, struct holt_error *error)
{
    const char *bytes = data;
    int r = 0;

    while (r == 0 && len > 0) {
        size_t part = len < RAW_DATA_MAX ? len : RAW_DATA_MAX;

        r = input_put(input, RAW_STDIN, bytes, part, deadline);
        bytes += part;
        len -= part;
    }
    if (r == 0 && is_eof)
        r = input_put(input, RAW_STDIN_EOF, NULL, 0, deadline);
    if (r == -ETIMEDOUT)
        return error_set(error, "deadline_exceeded", "the process did not read its input in time");
    return r < 0 ? error_set(error, "unavailable", "send to the daemon: %s", strerror(-r)) : 0;
}

int holt_input_message(struct holt_input *input, const char *message, int64_t deadline,
                       struct holt_error *error)
{
    size_t len = strlen(message);
    int r = len > RAW_WHOLE_MAX ? -EMSGSIZE : input_put(input, RAW_MESSAGE, message, len, deadline);

    if (r == -ETIMEDOUT)
        return error_set(error, "deadline_exceeded", "timed out while sending a message");
    return r < 0 ? error_set(error, "unavailable", "send to the daemon: %s", strerror(-r)) : 0;
}

void holt_input_close(struct holt_input *input)
{
    if (!input)
        return;
    link_unref(input->link);
    free(input);
}
