// SPDX-License-Identifier: Apache-2.0
#include "api/mux/channel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "api/mux/frame.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "http/connect.h"
#include "http/reply.h"
#include "wire/envelope.h"

enum {
    HEAD_MAX = 1024,
    /* A message is as long as its frame, or longer by its envelope and chunk. */
    OUT_MAX = HEAD_MAX + MUX_UPLOAD_CREDIT + 6 * MUX_MESSAGE_MAX,
    FRAME_MAX = REPLY_MAX + 128,
    KEPT_BYTES = 16 * 1024, /* of memory, by a channel that waits for its next message */
    READ_AHEAD = 4096,      /* of a channel without credit, so that an end is seen */
};

/* --- the request ------------------------------------------------------------------------------ */

/* A chunk of one envelope. */
static int chunk_add(struct buf *out, const struct buf *text)
{
    int r = buf_printf(out, "%zx\r\n", ENVELOPE_HEADER_SIZE + text->len);

    if (r == 0)
        r = envelope_add_large(out, text->data, text->len);
    return r < 0 ? r : buf_add_str(out, "\r\n");
}

static int body_add(struct mux_channel *channel, const struct buf *text)
{
    struct buf *out = &channel->out;
    int r;

    if (channel->shape == CONNECT_UPLOAD) {
        r = buf_add_str(out, "Transfer-Encoding: chunked\r\n\r\n");
        return r < 0 ? r : chunk_add(out, text);
    }
    r = buf_printf(out, "Content-Length: %zu\r\n\r\n",
                   text->len + (channel->shape == CONNECT_STREAM ? ENVELOPE_HEADER_SIZE : 0));
    if (r == 0 && channel->shape == CONNECT_STREAM)
        return envelope_add_large(out, text->data, text->len);
    return r < 0 ? r : buf_add(out, text->data, text->len);
}

static int request_add(struct mux_channel *channel, const struct mux_request *request,
                       const struct buf *text)
{
    const char *type = channel->shape == CONNECT_UNARY ? CONNECT_UNARY_TYPE : CONNECT_STREAM_TYPE;
    int r = buf_printf(&channel->out,
                       "POST /%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                       "Connect-Protocol-Version: 1\r\nContent-Type: %s\r\n",
                       request->call, type);

    if (r == 0 && request->timeout_ms > 0)
        r = buf_printf(&channel->out, "Connect-Timeout-Ms: %" PRIu64 "\r\n", request->timeout_ms);
    return r < 0 ? r : body_add(channel, text);
}

static int message_write(const json_t *message, struct buf *ret)
{
    return message ? json_write(message, ret) : buf_add_str(ret, "{}");
}

int mux_channel_init(struct mux_channel *channel, const struct mux_request *request,
                     struct err *err)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(OUT_MAX);
    int r;

    channel->out.max = OUT_MAX;
    channel->in.max = REPLY_MAX + ENVELOPE_HEADER_SIZE + MUX_READ_BYTES;
    channel->credit = MUX_CREDIT;
    channel->upload_credit = MUX_UPLOAD_CREDIT;
    channel->is_request_ended = channel->shape != CONNECT_UPLOAD;
    http_parser_init(&channel->parser, HTTP_RESPONSE);
    channel->parser.data = channel;
    r = message_write(request->message, &text);
    if (r == 0)
        r = request_add(channel, request, &text);
    return r < 0 ? err_sys(err, r, "write the request") : 0;
}

void mux_channel_done(struct mux_channel *channel)
{
    buf_done(&channel->out);
    buf_done(&channel->in);
}

int mux_channel_add(struct mux_channel *channel, const json_t *message, size_t size,
                    struct err *err)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(OUT_MAX);
    int r;

    if (channel->is_request_ended)
        return err_set(err, ERR_INVALID, "the method takes no further message");
    if (channel->upload_credit <= 0)
        return err_set(err, ERR_EXHAUSTED,
                       "the client sent more messages than it had credit for (%d)",
                       MUX_UPLOAD_CREDIT);
    channel->upload_credit -= (int64_t)size;
    channel->passed += size;
    r = message_write(message, &text);
    if (r == 0)
        r = chunk_add(&channel->out, &text);
    return r < 0 ? err_sys(err, r, "write the message") : 0;
}

int mux_channel_end(struct mux_channel *channel, struct err *err)
{
    int r;

    if (channel->is_request_ended)
        return 0;
    channel->is_request_ended = true;
    r = buf_add_str(&channel->out, "0\r\n\r\n");
    return r < 0 ? err_sys(err, r, "write the end of the request") : 0;
}

void mux_channel_grant(struct mux_channel *channel, uint64_t credit)
{
    channel->credit += credit > MUX_CREDIT_MAX ? MUX_CREDIT_MAX : (int64_t)credit;
    if (channel->credit > MUX_CREDIT_MAX)
        channel->credit = MUX_CREDIT_MAX;
}

/* --- the connection --------------------------------------------------------------------------- */

static int on_body(struct http_parser *parser, const char *data, size_t len)
{
    struct mux_channel *channel = parser->data;

    return buf_add(&channel->in, data, len) < 0;
}

static int on_complete(struct http_parser *parser)
{
    struct mux_channel *channel = parser->data;

    channel->is_reply_complete = true;
    return 0;
}

static const struct http_parser_settings settings = {
    .on_body = on_body,
    .on_message_complete = on_complete,
};

static bool has_envelopes(const struct mux_channel *channel)
{
    return channel->shape != CONNECT_UNARY && channel->parser.status_code == HTTP_STATUS_OK;
}

short mux_channel_events(const struct mux_channel *channel)
{
    bool wants_read = !channel->is_reply_complete && !channel->is_broken &&
                      (channel->credit > 0 || channel->in.len < READ_AHEAD);

    return (short)((wants_read ? POLLIN : 0) |
                   (channel->out.len > 0 && !channel->is_broken ? POLLOUT : 0));
}

size_t mux_channel_message_size(const struct mux_channel *channel)
{
    const struct buf *in = &channel->in;
    uint64_t left = channel->parser.content_length;
    uint32_t len;

    if (!has_envelopes(channel))
        return in->len + (in->len > 0 && left <= REPLY_MAX ? (size_t)left : 0);
    if (in->len < ENVELOPE_HEADER_SIZE)
        return in->len;
    memcpy(&len, in->data + 1, sizeof(len));
    return ENVELOPE_HEADER_SIZE + ntohl(len);
}

static void connection_write(struct mux_channel *channel)
{
    ssize_t n = send(channel->fd, channel->out.data, channel->out.len, MSG_NOSIGNAL);

    if (n > 0)
        buf_consume(&channel->out, (size_t)n);
    /* A server that refuses the request early has replied before it hung up. */
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        buf_clear(&channel->out);
}

static void connection_read(struct mux_channel *channel)
{
    char data[MUX_READ_BYTES];
    size_t most = channel->credit > 0 ? sizeof(data) : READ_AHEAD;
    ssize_t n = recv(channel->fd, data, most, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        (void)http_parser_execute(&channel->parser, &settings, data, (size_t)n);
    if (n <= 0 || channel->parser.http_errno != HPE_OK)
        channel->is_broken = !channel->is_reply_complete;
}

void mux_channel_transfer(struct mux_channel *channel, short events)
{
    short wanted = mux_channel_events(channel);

    if ((wanted & POLLOUT) && (events & (POLLOUT | POLLERR | POLLHUP)))
        connection_write(channel);
    if ((wanted & POLLIN) && (events & (POLLIN | POLLERR | POLLHUP)))
        connection_read(channel);
}

/* --- the reply -------------------------------------------------------------------------------- */

static int message_pass(struct mux_channel *channel, const struct mux_sink *sink,
                        const struct envelope *message)
{
    cleanup_with(buf_done) struct buf frame = BUF_INIT(FRAME_MAX);
    int r = mux_frame_add_message(&frame, channel->id, message->payload, message->len);

    if (r < 0)
        return r;
    channel->credit -= (int64_t)mux_count_characters(frame.data, frame.len);
    return sink->send(sink->context, &frame);
}

static int end_pass(struct mux_channel *channel, const struct mux_sink *sink,
                    const struct envelope *end)
{
    cleanup_with(buf_done) struct buf frame = BUF_INIT(FRAME_MAX);
    int r = mux_frame_add_end(&frame, channel->id, end->payload, end->len);

    channel->is_over = true;
    return r < 0 ? r : sink->send(sink->context, &frame);
}

int mux_channel_fail(struct mux_channel *channel, const struct mux_sink *sink,
                     const struct err *err)
{
    cleanup_with(buf_done) struct buf frame = BUF_INIT(FRAME_MAX);
    int r = mux_frame_add_error(&frame, channel->id, err);

    channel->is_over = true;
    return r < 0 ? r : sink->send(sink->context, &frame);
}

/* The body of a refusal is the error itself. */
static int refusal_pass(struct mux_channel *channel, const struct mux_sink *sink)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(FRAME_MAX);
    int r = buf_add_str(&text, "{\"error\":");

    if (r == 0)
        r = buf_add(&text, channel->in.data, channel->in.len);
    if (r == 0)
        r = buf_add_str(&text, "}");
    return r < 0 ? r : end_pass(channel, sink, &(struct envelope){ true, text.data, text.len });
}

static int whole_pass(struct mux_channel *channel, const struct mux_sink *sink)
{
    const struct envelope message = { false, channel->in.data, channel->in.len };
    static const struct envelope end = { true, "{}", 2 };
    int r;

    if (channel->parser.status_code != HTTP_STATUS_OK)
        return refusal_pass(channel, sink);
    channel->is_waiting = channel->credit <= 0;
    if (channel->is_waiting)
        return 0;
    r = message_pass(channel, sink, &message);
    return r < 0 ? r : end_pass(channel, sink, &end);
}

/* Returns the size of the envelope that was passed on; 0 if none is complete and allowed. */
static ssize_t envelope_pass(struct mux_channel *channel, const struct mux_sink *sink, size_t done)
{
    struct envelope envelope;
    ssize_t size = envelope_parse_up_to(channel->in.data + done, channel->in.len - done,
                                        ENVELOPE_LARGE_MAX, &envelope);
    int r;

    if (size < 0)
        channel->is_broken = true;
    channel->is_waiting = size > 0 && !envelope.is_end && channel->credit <= 0;
    if (size <= 0 || channel->is_waiting)
        return 0;
    r = envelope.is_end ? end_pass(channel, sink, &envelope)
                        : message_pass(channel, sink, &envelope);
    return r < 0 ? r : size;
}

static void buf_free(struct buf *buf)
{
    size_t max = buf->max;

    buf_done(buf);
    buf->max = max;
}

static int envelopes_pass(struct mux_channel *channel, const struct mux_sink *sink)
{
    size_t done = 0;
    ssize_t n = 1;

    while (n > 0 && done < channel->in.len && !channel->is_over) {
        n = envelope_pass(channel, sink, done);
        done += n > 0 ? (size_t)n : 0;
    }
    buf_consume(&channel->in, done);
    if (channel->in.len == 0 && channel->in.cap > KEPT_BYTES)
        buf_free(&channel->in);
    return n < 0 ? (int)n : 0;
}

/* Half of the window at a time, so that most messages need no frame of their own. */
static int credit_pass(struct mux_channel *channel, const struct mux_sink *sink)
{
    cleanup_with(buf_done) struct buf frame = BUF_INIT(FRAME_MAX);
    size_t granted = channel->passed;
    int r;

    if (channel->out.len > 0 || channel->is_request_ended || granted < MUX_UPLOAD_CREDIT / 2)
        return 0;
    channel->passed = 0;
    channel->upload_credit += (int64_t)granted;
    r = buf_printf(&frame, "{\"id\":%" PRIu64 ",\"credit\":%zu}", channel->id, granted);
    return r < 0 ? r : sink->send(sink->context, &frame);
}

int mux_channel_pass(struct mux_channel *channel, const struct mux_sink *sink)
{
    struct err err = { 0 };
    int r = credit_pass(channel, sink);

    if (r == 0 && has_envelopes(channel))
        r = envelopes_pass(channel, sink);
    else if (r == 0 && channel->is_reply_complete)
        r = whole_pass(channel, sink);
    if (r < 0 || channel->is_over)
        return r;
    if (!channel->is_waiting && (channel->is_broken || channel->is_reply_complete)) {
        (void)err_set(&err, ERR_UNAVAILABLE, "the call was cut off before its end");
        return mux_channel_fail(channel, sink, &err);
    }
    return 0;
}
