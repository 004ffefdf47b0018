// SPDX-License-Identifier: Apache-2.0
#include "mcp/reply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "http/connect.h"
#include "http/exchange.h"
#include "http/limits.h"
#include "mcp/call.h"
#include "mcp/message.h"
#include "mcp/session.h"
#include "mcp/stateless.h"

enum { STREAM_BLOCK = 1024 }; /* libmicrohttpd's own buffer, which chunked replies do not use */

/* Appends the message, which it takes, or an error if it is too long. */
static int message_write(json_t *message, struct buf *out)
{
    cleanup_json json_t *owned = message;
    cleanup_json json_t *refusal = NULL;
    struct mcp_fault fault;
    size_t start = out->len;

    if (!owned)
        return -ENOMEM;
    if (json_write(owned, out) == 0)
        return 0;
    out->len = start;
    (void)mcp_fault(&fault,
                    json_object_get(json_object_get(owned, "result"), "resultType")
                        ? MCP_REFUSED_STATELESS
                        : MCP_REFUSED,
                    "the result is longer than %d bytes: ask for less", MCP_REPLY_MAX);
    refusal = mcp_failure(json_object_get(owned, "id"), &fault);
    return refusal ? json_write(refusal, out) : -ENOMEM;
}

static enum MHD_Result queue(struct MHD_Connection *connection, unsigned status,
                             struct MHD_Response *response)
{
    enum MHD_Result result = MHD_queue_response(connection, status, response);

    MHD_destroy_response(response);
    return result;
}

/* Returns a response with the whole body, which it takes; NULL: no memory. */
static struct MHD_Response *body_response(struct client_connection *client, struct buf *body)
{
    struct MHD_Response *response;

    client_connection_allow(client, CONNECTION_IDLE_MS);
    client_connection_extend(client, body->len);
    response = MHD_create_response_from_buffer(body->len, body->data, MHD_RESPMEM_MUST_FREE);
    if (response)
        *body = (struct buf){ .max = body->max };
    return response;
}

enum MHD_Result mcp_reply_send(struct MHD_Connection *connection, struct client_connection *client,
                               const struct mcp_reply *reply)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(MCP_REPLY_MAX);
    struct MHD_Response *response;

    if (reply->body && message_write(reply->body, &body) < 0)
        return MHD_NO;
    response = body_response(client, &body);
    if (!response)
        return MHD_NO;
    if (reply->body)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, CONNECT_UNARY_TYPE);
    if (reply->session)
        (void)MHD_add_response_header(response, "Mcp-Session-Id", reply->session);
    if (reply->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "POST, DELETE");
    if (reply->is_last)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    return queue(connection, reply->status, response);
}

/* The HTTP side of a stream. */
struct events {
    struct mcp_stream stream;
    struct buf out; /* events that were made and not yet handed over */
    size_t sent;    /* bytes of out that were */
    bool is_over;   /* the answer is in out */
};

/* NULL: a comment, which keeps the connection from looking dead. */
static int event_add(struct buf *out, json_t *message)
{
    int r = buf_add_str(out, message ? "event: message\ndata: " : ": still running\n\n");

    if (!message)
        return r;

    if (r < 0) {
        json_decref(message);
        return r;
    }
    r = message_write(message, out);
    return r < 0 ? r : buf_add_str(out, "\n\n");
}

/* Fills the buffer: 0, or negative when the connection is unusable. Nothing is sent for a cancelled
 * call. */
static int fill(struct events *events)
{
    json_t *message = NULL;
    struct err err = { 0 };
    int r;

    buf_clear(&events->out);
    events->sent = 0;
    r = mcp_call_next(events->stream.call, &message, &err);
    if (r == -ECANCELED && exchange_is_stopped(events->stream.exchange, &err)) {
        message = mcp_failure_of(events->stream.id, &err);
        if (!events->stream.session)
            message = mcp_stateless_reply(message);
        r = 0;
    }
    events->is_over = r <= 0;
    if (r < 0)
        return r;
    return message || !events->is_over ? event_add(&events->out, message) : 0;
}

static ssize_t events_read(void *context, uint64_t position, char *data, size_t size)
{
    struct events *events = context;
    size_t len;

    (void)position;
    if (events->sent == events->out.len && !events->is_over && fill(events) < 0)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (events->sent == events->out.len)
        return MHD_CONTENT_READER_END_OF_STREAM;
    len = events->out.len - events->sent;
    if (len > size)
        len = size;
    memcpy(data, events->out.data + events->sent, len);
    events->sent += len;
    return (ssize_t)len;
}

static void events_free(void *context)
{
    struct events *events = context;

    mcp_call_free(events->stream.call);
    mcp_session_put(events->stream.session);
    json_decref(events->stream.id);
    buf_done(&events->out);
    free(events);
}

static void stream_headers_add(struct MHD_Response *response)
{
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, MCP_STREAM_TYPE);
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
    (void)MHD_add_response_header(response, "X-Accel-Buffering", "no");
}

enum MHD_Result mcp_events_send(struct MHD_Connection *connection, struct client_connection *client,
                                json_t *const *messages, size_t count)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(MCP_REPLY_MAX);
    struct MHD_Response *response;
    int r = 0;

    for (size_t i = 0; i < count; i++)
        r |= event_add(&body, messages[i]);
    if (r < 0)
        return MHD_NO;
    response = body_response(client, &body);
    if (!response)
        return MHD_NO;
    stream_headers_add(response);
    return queue(connection, MHD_HTTP_OK, response);
}

/* Cancelling a call shuts down the reading half of its connection, after which it carries no more
 * requests. So "Connection: close" is announced in advance. */
enum MHD_Result mcp_stream_send(struct MHD_Connection *connection, const struct mcp_stream *stream)
{
    struct events *events = xcalloc(1, sizeof(*events));
    struct MHD_Response *response;

    events->stream = *stream;
    (void)json_incref(stream->id);
    events->out.max = MCP_REPLY_MAX + STREAM_BLOCK;
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, events_read,
                                                 events, events_free);
    if (!response) {
        events_free(events);
        return MHD_NO;
    }
    stream_headers_add(response);
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    return queue(connection, MHD_HTTP_OK, response);
}
