// SPDX-License-Identifier: Apache-2.0
#include "api/stream/raw_session.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#include "api/stream/process_stream.h"
#include "api/stream/raw_session_internal.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/thread.h"
#include "host/process/process.h"
#include "http/connect.h"
#include "http/connect_call.h"
#include "http/stream.h"
#include "http/upgraded.h"
#include "wire/envelope.h"
#include "wire/raw.h"

enum {
    OUT_MAX = 2 * RAW_DATA_MAX,
    LINGER_MS = 5000, /* how long the daemon waits for the client to close after the end was sent */
};

struct stream_session {
    struct upgraded_connection session;
    struct stream *stream;
    const struct stream_owner *owner;
    struct process *process; /* the process that gets the client's input; NULL: none */
    struct raw_parser parser;
    struct buf in;         /* the input thread's: received, and not handed on */
    atomic_bool is_broken; /* the client does not keep to the protocol */
};

int raw_wait(int fd, short events, int timeout_ms)
{
    struct pollfd wait = { .fd = fd, .events = events };

    return poll(&wait, 1, timeout_ms) < 0 && errno != EINTR ? -errno : 0;
}

int raw_send_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
        int r = 0;

        if (n < 0 && errno == EAGAIN)
            r = raw_wait(fd, POLLOUT, -1);
        else if (n < 0 && errno != EINTR)
            r = -errno;
        if (r < 0)
            return r;
        data += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* 1, or 0 when nothing more will come. */
static int receive(struct stream_session *session)
{
    for (;;) {
        ssize_t n = recv(session->session.fd, session->in.data + session->in.len,
                         PROCESS_INPUT_MAX - session->in.len, 0);

        if (n > 0) {
            session->in.len += (size_t)n;
            return 1;
        }
        if (n == 0 || (errno != EAGAIN && errno != EINTR) ||
            raw_wait(session->session.fd, POLLIN, -1) < 0)
            return 0;
    }
}

/* Waits until the process has room. Input that it no longer takes is dropped; its stream reports
 * how it ended. */
static void hand_on(const struct stream_session *session, const struct raw_piece *piece)
{
    bool is_eof = piece->type == RAW_STDIN_EOF;
    struct err ignored;

    if (session->process && (piece->len > 0 || is_eof))
        (void)process_send_input(session->process, piece->data, piece->len, is_eof, &ignored);
}

static int take_received(struct stream_session *session)
{
    struct raw_piece piece;
    size_t done = 0;
    ssize_t n;

    while ((n = raw_next(&session->parser, session->in.data + done, session->in.len - done,
                         &piece)) > 0) {
        hand_on(session, &piece);
        done += (size_t)n;
    }
    buf_consume(&session->in, done);
    return n < 0 ? (int)n : 0;
}

static void input_main(void *argument)
{
    struct stream_session *session = argument;
    int r;

    do
        r = take_received(session);
    while (r == 0 && receive(session) > 0);
    if (r < 0) {
        atomic_store(&session->is_broken, true);
        (void)shutdown(session->session.fd,
                       SHUT_RD); /* wakes the thread that waits for the process */
    }
}

int raw_end_add(struct buf *out, const struct err *err)
{
    cleanup_with(buf_done) struct buf end = BUF_INIT(RAW_WHOLE_MAX);
    int r = envelope_add_end(&end, err);

    return r < 0 ? r
                 : raw_add(out, RAW_END, end.data + ENVELOPE_HEADER_SIZE,
                           end.len - ENVELOPE_HEADER_SIZE);
}

/* One turn: 1 when there is more to come. The last event and the end go out together. */
static int output_pass(struct stream_session *session, struct buf *out)
{
    struct err err = { 0 };
    int r, sent;

    buf_clear(out);
    if (atomic_load(&session->is_broken))
        r = -ECANCELED;
    else
        r = stream_next(session->stream, session->owner, out, &err);
    if (r == -ECANCELED && atomic_load(&session->is_broken))
        (void)err_set(&err, ERR_INVALID, "malformed frame");
    else if (r == -ECANCELED)
        return r;
    if (err.kind == ERR_INTERNAL)
        log_warn("stream failed: %s", err.msg);
    if (r < 0)
        buf_clear(out);
    if (r <= 0)
        session->owner->on_end(session->owner->context, r < 0 ? err.kind : ERR_NONE);
    if (r <= 0 && raw_end_add(out, r < 0 ? &err : NULL) < 0)
        return -ENOMEM;
    sent = raw_send_all(session->session.fd, out->data, out->len);
    return sent < 0 ? sent : r;
}

void raw_hang_up(int fd)
{
    (void)shutdown(fd, SHUT_WR);
    (void)raw_wait(fd, POLLRDHUP, LINGER_MS);
    (void)shutdown(fd, SHUT_RDWR);
}

static int session_init(struct stream_session *session, const char *early, size_t early_len)
{
    int r = buf_reserve(&session->in, PROCESS_INPUT_MAX + early_len);

    return r < 0 ? r : buf_add(&session->in, early, early_len);
}

/* The process is let go of, which ends it unless it has ended, before the input thread is waited
 * for: that may be waiting for the process. */
static void session_pass(struct stream_session *session)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(OUT_MAX);
    struct thread input;
    int r = thread_start(&input, "holt-input", input_main, session);

    if (r < 0) {
        log_warn("start a thread for input: %s", strerror(-r));
        session->stream->ops->close(session->stream);
        return;
    }
    while (output_pass(session, &out) > 0)
        ;
    session->stream->ops->close(session->stream);
    raw_hang_up(session->session.fd); /* what the client still sends is read away meanwhile */
    thread_join(&input);
}

void raw_session_run(struct upgraded_connections *upgraded, struct stream *stream,
                     const struct stream_owner *owner, const struct raw_client *client)
{
    struct stream_session session = {
        .stream = stream,
        .owner = owner,
        .process = process_stream_writer(stream),
        .session = { .fd = client->fd },
        .parser = { .is_daemon = true },
        .in = BUF_INIT(PROCESS_INPUT_MAX + client->early_len),
    };

    upgraded_add(upgraded, &session.session);
    if (session_init(&session, client->early, client->early_len) < 0)
        stream->ops->close(stream);
    else
        session_pass(&session);
    upgraded_remove(upgraded, &session.session);
    process_unref(session.process);
    buf_done(&session.in);
}
