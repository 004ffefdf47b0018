// SPDX-License-Identifier: Apache-2.0
#include "api/mux/mux.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <wslay/wslay.h>

#include "api/mux/channel.h"
#include "api/mux/frame.h"
#include "api/route.h"
#include "api/stream/raw_session_internal.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "http/connect_call.h"
#include "http/exchange.h"
#include "http/inner.h"
#include "http/limits.h"
#include "http/session.h"
#include "http/upgraded.h"

enum {
    SESSION_MS = 10 * 1000,     /* for the first frame of a browser */
    SESSION_CUT_MS = 20 * 1000, /* until the connection is cut */
    SESSION_FRAME_MAX = 512,    /* its size */
    PING_MS = 60 * 1000,        /* a client that was silent for so long is asked */
    SILENT_MS = 150 * 1000,     /* and is given up after so long, or when it reads nothing */
    END_MS = 5 * 1000,          /* for the last frames */
    MESSAGES_MAX = 1024,        /* that wait for the client, before it is not heard any more */
    FRAGMENTS_MAX = 1024,       /* of one message */
    TURN_BYTES = 256 * 1024,    /* of the client, before the channels have their turn */
};

struct mux {
    struct exchange *exchange;
    struct upgraded_connection connection;
    const char *early; /* bytes that were received with the header */
    size_t early_len;
    size_t turn_bytes; /* received in this turn */

    wslay_event_context_ptr websocket;
    bool is_ready;     /* the caller is known */
    bool is_gone;      /* the client */
    bool is_ending;    /* nothing is read from the client any more, calls may end */
    uint64_t heard_ms; /* when the client last sent something, or took something of a long queue */
    uint64_t deadline_ms; /* of the session's frame, or of the end; CLOCK_NEVER: none */
    bool is_asked;        /* a ping is under way */
    unsigned fragments;   /* of the message that arrives, after the first */

    struct mux_channel *channels[MUX_CHANNELS_MAX];
    size_t count;
    uint64_t last_id;
};

/* --- frames to the client --------------------------------------------------------------------- */

static int frame_send(void *context, const struct buf *frame)
{
    const struct mux *mux = context;
    const struct wslay_event_msg message = {
        .opcode = WSLAY_TEXT_FRAME,
        .msg = (const uint8_t *)frame->data,
        .msg_length = frame->len,
    };
    int r = wslay_event_queue_msg(mux->websocket, &message);

    return r == WSLAY_ERR_NOMEM ? -ENOMEM
                                : 0; /* after a close nothing is sent, and nothing fails */
}

static int text_send(struct mux *mux, const char *text)
{
    cleanup_with(buf_done) struct buf frame = BUF_INIT(SESSION_FRAME_MAX);
    int r = buf_add_str(&frame, text);

    return r < 0 ? r : frame_send(mux, &frame);
}

static struct mux_sink sink_of(struct mux *mux)
{
    return (struct mux_sink){ frame_send, mux };
}

/* Calls may send their last frames; then the WebSocket is closed. */
static void mux_end(struct mux *mux)
{
    mux->is_ending = true;
    mux->deadline_ms = clock_after_ms(END_MS);
}

static void mux_close(struct mux *mux, uint16_t status, const char *reason)
{
    enum { REASON_MAX = 123 }; /* of a control frame */

    (void)wslay_event_queue_close(mux->websocket, status, (const uint8_t *)reason,
                                  strnlen(reason, REASON_MAX));
    for (size_t i = 0; i < mux->count; i++)
        mux->channels[i]->is_over = true;
    mux_end(mux);
}

/* --- channels --------------------------------------------------------------------------------- */

static void channel_free(const struct mux *mux, struct mux_channel *channel)
{
    inner_close(channel->fd, &mux->exchange->caller);
    mux_channel_done(channel);
    free(channel);
}

static struct mux_channel *channel_find(const struct mux *mux, uint64_t id)
{
    for (size_t i = 0; i < mux->count; i++)
        if (mux->channels[i]->id == id)
            return mux->channels[i];
    return NULL;
}

/* Ends of calls hang up their connections, which cancels those that are still at work. */
static void channels_remove_ended(struct mux *mux)
{
    size_t kept = 0;

    for (size_t i = 0; i < mux->count; i++) {
        if (mux->channels[i]->is_over)
            channel_free(mux, mux->channels[i]);
        else
            mux->channels[kept++] = mux->channels[i];
    }
    mux->count = kept;
}

static enum connect_shape shape_of(const struct route *route)
{
    if (route->upload)
        return CONNECT_UPLOAD;
    return route->stream ? CONNECT_STREAM : CONNECT_UNARY;
}

static const struct route *route_of(const char *call)
{
    cleanup_free char *path = xasprintf("/%s", call);

    return route_find(path);
}

static int channel_start(struct mux *mux, struct mux_channel *channel,
                         const struct mux_frame *frame, struct err *err)
{
    const struct mux_request request = { frame->call, frame->message, frame->timeout_ms };
    const struct route *route = route_of(frame->call);
    int r;

    if (!route)
        return err_set(err, ERR_UNSUPPORTED, "no such method");
    if (mux->count == MUX_CHANNELS_MAX)
        return err_set(err, ERR_EXHAUSTED, "channel limit reached (%d)", MUX_CHANNELS_MAX);
    channel->shape = shape_of(route);
    r = mux_channel_init(channel, &request, err);
    if (r == 0)
        r = inner_connect(mux->exchange, &mux->exchange->caller, &channel->fd, err);
    if (r < 0)
        return r;
    if (frame->has_credit) {
        channel->credit = 0;
        mux_channel_grant(channel, frame->credit);
    }
    return frame->is_end ? mux_channel_end(channel, err) : 0;
}

static int channel_open(struct mux *mux, const struct mux_frame *frame)
{
    struct mux_channel *channel = xcalloc(1, sizeof(*channel));
    const struct mux_sink sink = sink_of(mux);
    struct err err = { 0 };
    int r;

    channel->id = mux->last_id = frame->id;
    channel->fd = -EBADF;
    if (channel_start(mux, channel, frame, &err) == 0) {
        mux_channel_transfer(channel, POLLOUT);
        mux->channels[mux->count++] = channel;
        return 0;
    }
    r = mux_channel_fail(channel, &sink, &err);
    channel_free(mux, channel);
    return r;
}

static int channel_change(struct mux *mux, struct mux_channel *channel,
                          const struct mux_frame *frame, size_t size)
{
    const struct mux_sink sink = sink_of(mux);
    struct err err = { 0 };
    int r = 0;

    if (frame->has_credit)
        mux_channel_grant(channel, frame->credit);
    if (frame->is_cancel)
        r = err_set(&err, ERR_CANCELED, "canceled by the client");
    if (r == 0 && frame->message)
        r = mux_channel_add(channel, frame->message, size, &err);
    if (r == 0 && frame->is_end)
        r = mux_channel_end(channel, &err);
    return r < 0 ? mux_channel_fail(channel, &sink, &err) : 0;
}

/* --- frames from the client ------------------------------------------------------------------- */

static int session_take(struct mux *mux, const struct mux_frame *frame, struct err *err)
{
    struct exchange *exchange = mux->exchange;

    if (frame->key)
        session_find_by_key(exchange, frame->key, &exchange->caller);
    if (exchange->caller.role == ROLE_NONE)
        return err_set(err, ERR_UNAUTHENTICATED, "the first frame must have the key of a session");
    mux->is_ready = true;
    mux->deadline_ms = CLOCK_NEVER;
    client_connection_set_token(exchange->client, credential_of(&exchange->caller));
    client_connection_allow(exchange->client, CONNECTION_FOREVER);
    wslay_event_config_set_max_recv_msg_length(mux->websocket, MUX_MESSAGE_MAX);
    return text_send(mux, "{\"ready\":true}");
}

/* Frames about a channel that has just ended are late, and no error. */
static int channel_frame_take(struct mux *mux, const struct mux_frame *frame, size_t size,
                              struct err *err)
{
    struct mux_channel *channel = channel_find(mux, frame->id);
    bool is_new = frame->id > mux->last_id;

    if (is_new != (frame->call != NULL))
        return err_set(err, ERR_INVALID, "channel %" PRIu64 " %s", frame->id,
                       is_new ? "was not opened" : "is not above the last one");
    if (is_new)
        return channel_open(mux, frame);
    return channel && !channel->is_over ? channel_change(mux, channel, frame, size) : 0;
}

static int frame_take(struct mux *mux, const char *text, size_t len, struct err *err)
{
    struct mux_frame frame;
    char pong[64];
    int r = mux_frame_parse(text, len, &frame, err);

    if (r < 0)
        return r;
    if (!mux->is_ready || frame.key) {
        r = mux->is_ready ? text_send(mux, "{\"ready\":true}") : session_take(mux, &frame, err);
    } else if (frame.is_ping) {
        (void)snprintf(pong, sizeof(pong), "{\"pong\":%" PRIu64 "}", frame.ping);
        r = text_send(mux, pong);
    } else {
        r = channel_frame_take(mux, &frame, mux_count_characters(text, len), err);
    }
    mux_frame_done(&frame);
    return r;
}

static void on_message(wslay_event_context_ptr websocket,
                       const struct wslay_event_on_msg_recv_arg *arg, void *context)
{
    struct mux *mux = context;
    struct err err = { 0 };
    int r;

    (void)websocket;
    if (mux->is_ending || wslay_is_ctrl_frame(arg->opcode))
        return;
    if (arg->opcode != WSLAY_TEXT_FRAME) {
        mux_close(mux, WSLAY_CODE_UNSUPPORTED_DATA, "frames are text");
        return;
    }
    r = frame_take(mux, (const char *)arg->msg, arg->msg_length, &err);
    if (r < 0 && err.kind == ERR_UNAUTHENTICATED)
        mux_close(mux, WSLAY_CODE_POLICY_VIOLATION, err.msg);
    else if (r < 0)
        mux_close(mux, WSLAY_CODE_PROTOCOL_ERROR, err.kind ? err.msg : "out of memory");
}

/* --- the connection --------------------------------------------------------------------------- */

static bool queue_has_room(const struct mux *mux)
{
    return wslay_event_get_queued_msg_length(mux->websocket) < MUX_QUEUE_MAX &&
           wslay_event_get_queued_msg_count(mux->websocket) < MESSAGES_MAX;
}

static ssize_t early_take(struct mux *mux, uint8_t *data, size_t len)
{
    size_t n = len < mux->early_len ? len : mux->early_len;

    memcpy(data, mux->early, n);
    mux->early += n;
    mux->early_len -= n;
    return (ssize_t)n;
}

/* A client whose connection the limits have shut down for reading can still be told why. */
static void client_lost(struct mux *mux)
{
    struct err err = { 0 };

    if (exchange_is_stopped(mux->exchange, &err))
        mux_end(mux);
    else
        mux->is_gone = true;
}

static ssize_t on_receive(wslay_event_context_ptr websocket, uint8_t *data, size_t len, int flags,
                          void *context)
{
    struct mux *mux = context;
    bool is_turn_over = mux->is_ending || mux->turn_bytes >= TURN_BYTES || !queue_has_room(mux);
    ssize_t n = -1;

    (void)flags;
    if (mux->early_len > 0)
        return early_take(mux, data, len);
    errno = EAGAIN;
    if (!is_turn_over)
        n = recv(mux->connection.fd, data, len, 0);
    if (n > 0) {
        mux->turn_bytes += (size_t)n;
        mux->heard_ms = clock_ms();
        mux->is_asked = false;
        return n;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
        client_lost(mux);
    wslay_event_set_error(websocket,
                          mux->is_gone ? WSLAY_ERR_CALLBACK_FAILURE : WSLAY_ERR_WOULDBLOCK);
    return -1;
}

static ssize_t on_send(wslay_event_context_ptr websocket, const uint8_t *data, size_t len,
                       int flags, void *context)
{
    struct mux *mux = context;
    ssize_t n;

    do
        n = send(mux->connection.fd, data, len,
                 MSG_NOSIGNAL | (flags & WSLAY_MSG_MORE ? MSG_MORE : 0));
    while (n < 0 && errno == EINTR);
    if (n >= 0)
        return n;
    wslay_event_set_error(websocket,
                          errno == EAGAIN ? WSLAY_ERR_WOULDBLOCK : WSLAY_ERR_CALLBACK_FAILURE);
    return -1;
}

/* A connection that is shut down for reading still delivers what the client sends. */
static void client_receive(struct mux *mux)
{
    struct err err = { 0 };

    mux->turn_bytes = 0;
    if (!mux->is_ending && exchange_is_stopped(mux->exchange, &err))
        mux_end(mux);
    if (!mux->is_ending && wslay_event_want_read(mux->websocket))
        (void)wslay_event_recv(mux->websocket);
}

static void client_send(struct mux *mux)
{
    size_t before = wslay_event_get_queued_msg_length(mux->websocket);

    if (wslay_event_send(mux->websocket) < 0)
        mux->is_gone = true;
    if (before >= MUX_QUEUE_MAX && wslay_event_get_queued_msg_length(mux->websocket) < before)
        mux->heard_ms = clock_ms();
}

/* --- the loop --------------------------------------------------------------------------------- */

struct wait {
    struct pollfd fds[1 + MUX_CHANNELS_MAX];
    size_t count;
};

/* Of large messages one is received at a time: that of the first channel which has begun one. */
static short channel_events(const struct mux *mux, const struct mux_channel *channel,
                            bool *has_large)
{
    short events = mux_channel_events(channel);
    bool is_large = mux_channel_message_size(channel) > MUX_LARGE;

    if (!queue_has_room(mux) || (is_large && *has_large))
        events &= (short)~POLLIN;
    *has_large |= is_large && (events & POLLIN);
    return events;
}

/* poll(2) reports a hang-up in any case, so a descriptor that nothing is wanted of is left out. */
static void wait_fill(const struct mux *mux, struct wait *ret)
{
    bool reads = !mux->is_ending && queue_has_room(mux) && wslay_event_want_read(mux->websocket);
    bool writes = wslay_event_want_write(mux->websocket);
    bool has_large = false;

    ret->count = 1 + mux->count;
    ret->fds[0] = (struct pollfd){
        .fd = mux->connection.fd,
        .events = (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)),
    };
    if (ret->fds[0].events == 0)
        ret->fds[0].fd = -1;
    for (size_t i = 0; i < mux->count; i++) {
        const struct mux_channel *channel = mux->channels[i];
        short events = channel_events(mux, channel, &has_large);

        ret->fds[1 + i] = (struct pollfd){ .fd = events ? channel->fd : -1, .events = events };
    }
}

static uint64_t wake_ms(const struct mux *mux)
{
    uint64_t silent = mux->heard_ms + (mux->is_asked ? SILENT_MS : PING_MS);

    return mux->deadline_ms < silent ? mux->deadline_ms : silent;
}

static void times_check(struct mux *mux)
{
    const struct wslay_event_msg ping = { .opcode = WSLAY_PING };
    uint64_t now = clock_ms();

    if (now >= mux->deadline_ms && !mux->is_ready && !mux->is_ending)
        mux_close(mux, WSLAY_CODE_POLICY_VIOLATION, "no session was named in time");
    else if (now >= mux->deadline_ms || now >= mux->heard_ms + SILENT_MS)
        mux->is_gone = true;
    if (now < mux->heard_ms + PING_MS || mux->is_asked)
        return;
    mux->is_asked = true;
    (void)wslay_event_queue_msg(mux->websocket, &ping);
}

static void channels_transfer(const struct mux *mux, const struct wait *wait)
{
    for (size_t i = 0; i < mux->count; i++)
        if (wait->fds[1 + i].revents != 0)
            mux_channel_transfer(mux->channels[i], wait->fds[1 + i].revents);
}

static void channels_pass(struct mux *mux)
{
    const struct mux_sink sink = sink_of(mux);

    for (size_t i = 0; i < mux->count; i++)
        if (!mux->channels[i]->is_over && mux_channel_pass(mux->channels[i], &sink) < 0)
            mux_close(mux, WSLAY_CODE_INTERNAL_SERVER_ERROR, "out of memory");
    channels_remove_ended(mux);
}

/* The reason for an end by the daemon follows the last frames of the calls. libwslay would send it
 * before those that still wait. */
static void end_explain(struct mux *mux)
{
    struct err err = { 0 };

    if (!mux->is_ending || mux->count > 0 || wslay_event_get_queued_msg_count(mux->websocket) > 0 ||
        wslay_event_get_close_sent(mux->websocket) || !exchange_is_stopped(mux->exchange, &err))
        return;
    (void)wslay_event_queue_close(mux->websocket,
                                  err.kind == ERR_UNAUTHENTICATED ? WSLAY_CODE_POLICY_VIOLATION
                                                                  : WSLAY_CODE_GOING_AWAY,
                                  (const uint8_t *)err.msg, strnlen(err.msg, 100));
}

static bool is_finished(const struct mux *mux)
{
    return mux->is_gone ||
           (!wslay_event_want_write(mux->websocket) &&
            (!wslay_event_want_read(mux->websocket) || (mux->is_ending && mux->count == 0)));
}

static void mux_loop(struct mux *mux)
{
    struct wait wait = { .count = 0 };

    client_receive(mux); /* what came with the header */
    while (!is_finished(mux)) {
        wait_fill(mux, &wait);
        if (poll(wait.fds, wait.count, clock_left_ms(wake_ms(mux))) < 0 && errno != EINTR)
            return;
        channels_transfer(mux, &wait);
        if (wait.fds[0].revents & (POLLIN | POLLERR | POLLHUP))
            client_receive(mux);
        channels_pass(mux);
        times_check(mux);
        if (!mux->is_gone && wslay_event_want_write(mux->websocket))
            client_send(mux);
        end_explain(mux);
    }
}

/* The library allocates memory for each fragment, whatever its length. */
static void on_frame(wslay_event_context_ptr context,
                     const struct wslay_event_on_frame_recv_start_arg *frame, void *user)
{
    struct mux *mux = user;

    (void)context;
    if (wslay_is_ctrl_frame(frame->opcode))
        return;
    mux->fragments = frame->opcode == WSLAY_CONTINUATION_FRAME ? mux->fragments + 1 : 0;
    if (mux->fragments > FRAGMENTS_MAX)
        mux_close(mux, WSLAY_CODE_MESSAGE_TOO_BIG, "the message has too many fragments");
}

static int websocket_init(struct mux *mux)
{
    static const struct wslay_event_callbacks callbacks = {
        .recv_callback = on_receive,
        .send_callback = on_send,
        .on_frame_recv_start_callback = on_frame,
        .on_msg_recv_callback = on_message,
    };

    if (wslay_event_context_server_init(&mux->websocket, &callbacks, mux) != 0)
        return -ENOMEM;
    wslay_event_config_set_max_recv_msg_length(mux->websocket,
                                               mux->is_ready ? MUX_MESSAGE_MAX : SESSION_FRAME_MAX);
    return 0;
}

void mux_run(struct exchange *exchange, const struct raw_client *client)
{
    struct mux mux = {
        .exchange = exchange,
        .connection = { .fd = client->fd },
        .early = client->early,
        .early_len = client->early_len,
        .is_ready = exchange->caller.role != ROLE_NONE,
        .heard_ms = clock_ms(),
    };

    (void)setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    mux.deadline_ms = mux.is_ready ? CLOCK_NEVER : clock_after_ms(SESSION_MS);
    client_connection_allow(exchange->client, mux.is_ready ? CONNECTION_FOREVER : SESSION_CUT_MS);
    if (websocket_init(&mux) < 0)
        return;
    upgraded_add(exchange->listener->upgraded, &mux.connection);
    mux_loop(&mux);
    for (size_t i = 0; i < mux.count; i++)
        channel_free(&mux, mux.channels[i]);
    if (!mux.is_gone)
        raw_hang_up(client->fd);
    upgraded_remove(exchange->listener->upgraded, &mux.connection);
    wslay_event_context_free(mux.websocket);
}
