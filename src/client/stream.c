// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "holt.h"
#include "wire/envelope.h"

enum {
    /* The longest envelope that is not whole yet, and what one receive can add to it. */
    WAITING_MAX = ENVELOPE_HEADER_SIZE + ENVELOPE_PAYLOAD_MAX + 64 * 1024,
};

struct holt_stream {
    struct holt *holt;
    size_t position; /* in the body: behind the message that was handed out last */
    bool has_status;
    bool is_over;
};

int holt_stream_open(struct holt *holt, const char *method, const char *request,
                     struct holt_stream **ret, struct holt_error *error)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(ENVELOPE_HEADER_SIZE + ENVELOPE_PAYLOAD_MAX);
    struct http_request http_request = {
        .content_type = "application/connect+json",
        .reply_max = WAITING_MAX,
    };
    struct holt_stream *stream;

    if (envelope_add(&body, request, strlen(request)) < 0)
        return error_set(error, "invalid_argument", "the request is longer than %d bytes",
                         ENVELOPE_PAYLOAD_MAX);
    http_request.body = body.data;
    http_request.len = body.len;
    if (client_send(holt, method, &http_request, error) < 0)
        return -1;
    holt->is_streaming = true;
    stream = xcalloc(1, sizeof(*stream));
    stream->holt = holt;
    *ret = stream;
    return 0;
}

/* The envelope at the position, as envelope_parse says. */
static ssize_t parse_waiting(const struct holt_stream *stream, struct envelope *ret)
{
    const struct buf *body = &stream->holt->http.body;

    return body->len > stream->position
               ? envelope_parse(body->data + stream->position, body->len - stream->position, ret)
               : 0;
}

static int read_status(struct holt_stream *stream, struct holt_error *error)
{
    struct http *http = &stream->holt->http;
    unsigned status;

    if (http_read_head(http, &status, error) < 0)
        return -1;
    stream->has_status = true;
    if (status == HTTP_STATUS_OK)
        return 0;
    stream->is_over = true;
    if (client_read_all(stream->holt, error) < 0)
        return -1;
    return error_from_reply(error, status, http->body.data, http->body.len);
}

static int read_more(struct holt_stream *stream, struct holt_error *error)
{
    struct http *http = &stream->holt->http;
    int r;

    buf_consume(&http->body, stream->position);
    stream->position = 0;
    r = http_read_body(http, error);
    if (r == 0)
        return error_set(error, "unavailable", "the daemon broke off the stream");
    return r < 0 ? -1 : 0;
}

static int end(struct holt_stream *stream, const struct envelope *last, struct holt_error *error)
{
    /* What is left is HTTP's own end, for which nobody needs to wait now. */
    stream->is_over = true;
    stream->holt->has_rest = !stream->holt->http.is_complete;
    return error_from_end(error, last->payload, last->len);
}

int holt_stream_next(struct holt_stream *stream, const char **ret_message, size_t *ret_len,
                     struct holt_error *error)
{
    struct envelope envelope;
    ssize_t size;

    if (stream->is_over)
        return error_set(error, "failed_precondition", "the stream is over");
    if (!stream->has_status && read_status(stream, error) < 0)
        return -1;
    while ((size = parse_waiting(stream, &envelope)) == 0)
        if (read_more(stream, error) < 0)
            return -1;
    if (size < 0)
        return error_set(error, "internal", "the daemon's stream cannot be read: %s",
                         strerror((int)-size));
    stream->position += (size_t)size;
    if (envelope.is_end)
        return end(stream, &envelope, error);
    *ret_message = envelope.payload;
    *ret_len = envelope.len;
    return 1;
}

int holt_stream_fd(const struct holt_stream *stream)
{
    struct envelope ignored;
    bool is_waiting = !stream->holt->http.is_complete && parse_waiting(stream, &ignored) == 0;

    return is_waiting ? stream->holt->http.fd : -1;
}

void holt_stream_close(struct holt_stream *stream)
{
    if (!stream)
        return;
    if (!stream->holt->http.is_complete && !stream->holt->has_rest)
        http_done(&stream->holt->http);
    stream->holt->is_streaming = false;
    free(stream);
}
