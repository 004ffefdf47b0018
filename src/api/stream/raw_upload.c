// SPDX-License-Identifier: Apache-2.0
/* The daemon's side of a raw client stream: messages and bytes in, one answer out. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "api/stream/raw_session.h"
#include "api/stream/raw_session_internal.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "http/connect_call.h"
#include "http/stream.h"
#include "http/upgraded.h"
#include "http/upload.h"
#include "wire/raw.h"

enum {
    RECEIVE_CHUNK = 256 * 1024,
    DISCARD_MAX = 64 * 1024 * 1024, /* bytes read after a failure before hanging up */
    DISCARD_MS = 2000,
    IN_MAX = 2 * RECEIVE_CHUNK,
    OUT_MAX = 2 * (RAW_HEADER_SIZE + RAW_WHOLE_MAX),
};

_Static_assert(RECEIVE_CHUNK >= RAW_HEADER_SIZE + RAW_WHOLE_MAX, "a message is received whole");

struct raw_intake {
    struct upgraded_connection session;
    const struct stream_owner *owner;
    struct upload *upload;
    struct raw_parser parser;
    struct buf in;
    size_t taken;
    bool is_over; /* the client has said all */
};

/* 1, or 0 when nothing more will come (in time). */
static int receive(struct raw_intake *intake, int timeout_ms)
{
    buf_consume(&intake->in, intake->taken);
    intake->taken = 0;
    if (buf_reserve(&intake->in, RECEIVE_CHUNK) < 0)
        return 0;
    for (bool has_waited = false;;) {
        ssize_t n = recv(intake->session.fd, intake->in.data + intake->in.len, RECEIVE_CHUNK, 0);

        if (n > 0) {
            intake->in.len += (size_t)n;
            return 1;
        }
        if (n == 0 || (errno != EAGAIN && errno != EINTR) || (has_waited && timeout_ms >= 0) ||
            raw_wait(intake->session.fd, POLLIN, timeout_ms) < 0)
            return 0;
        has_waited = true;
    }
}

static int take_message(struct raw_intake *intake, const struct raw_piece *piece, struct err *err)
{
    cleanup_json json_t *message = NULL;
    int r = json_parse_object(piece->data, piece->len, &message, err);

    return r < 0 ? r : intake->upload->ops->message(intake->upload, message, err);
}

static int take_piece(struct raw_intake *intake, const struct raw_piece *piece, struct err *err)
{
    if (piece->type == RAW_MESSAGE)
        return take_message(intake, piece, err);
    if (piece->type == RAW_STDIN)
        return intake->upload->ops->data(intake->upload, piece->data, piece->len, err);
    intake->is_over = true;
    return 0;
}

/* Reads until the client's end: 0, -ECANCELED when it has gone, or -errno with err set. A
 * connection that is shut down for reading still delivers what the client sends. */
static int take_all(struct raw_intake *intake, struct err *err)
{
    int r = 0;

    while (r == 0 && !intake->is_over) {
        struct raw_piece piece;
        ssize_t n = raw_next(&intake->parser, intake->in.data + intake->taken,
                             intake->in.len - intake->taken, &piece);

        if (n < 0)
            return err_set(err, ERR_INVALID, "malformed frame");
        if (intake->owner->is_stopped(intake->owner->context, err))
            return -ESHUTDOWN;
        if (n == 0) {
            r = receive(intake, -1) ? 0 : -ECANCELED;
            continue;
        }
        intake->taken += (size_t)n;
        r = take_piece(intake, &piece, err);
    }
    return r;
}

static int answer(struct raw_intake *intake, struct buf *out, struct err *err)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(RAW_WHOLE_MAX);
    int r = intake->upload->ops->finish(intake->upload, &text, err);

    if (r < 0)
        return r;
    r = text.len > 0 ? raw_add(out, RAW_EVENT, text.data, text.len)
                     : raw_add(out, RAW_EVENT, "{}", 2);
    return r < 0 ? err_sys(err, r, "write the reply") : 0;
}

/* Reads on after a failure: a client that is still sending would not read the error otherwise. */
static void discard(struct raw_intake *intake)
{
    size_t total = 0;

    while (total < DISCARD_MAX && receive(intake, DISCARD_MS)) {
        total += intake->in.len;
        intake->taken = intake->in.len;
    }
}

static void serve(struct raw_intake *intake, struct err *err)
{
    const struct stream_owner *owner = intake->owner;
    cleanup_with(buf_done) struct buf out = BUF_INIT(OUT_MAX);
    int r = raw_add(&out, RAW_EVENT, "{}", 2);

    if (r == 0)
        r = raw_send_all(intake->session.fd, out.data, out.len);
    buf_clear(&out);
    r = r < 0 ? -ECANCELED : take_all(intake, err);
    if (r == 0)
        r = answer(intake, &out, err);
    intake->upload->ops->close(intake->upload);
    /* A call past its deadline looks like a client that has gone. */
    if (r == -ECANCELED && !owner->is_late(owner->context, err) &&
        !owner->is_stopped(owner->context, err))
        return;
    if (r < 0)
        buf_clear(&out);
    if (err->kind == ERR_INTERNAL)
        log_warn("upload failed: %s", err->msg);
    if (raw_end_add(&out, r < 0 ? err : NULL) < 0 ||
        raw_send_all(intake->session.fd, out.data, out.len) < 0)
        return;
    (void)shutdown(intake->session.fd, SHUT_WR);
    if (r < 0)
        discard(intake);
    raw_hang_up(intake->session.fd);
}

void raw_upload_run(struct upgraded_connections *upgraded, struct upload *upload,
                    const struct stream_owner *owner, const struct raw_client *client)
{
    struct raw_intake intake = {
        .session = { .fd = client->fd },
        .owner = owner,
        .upload = upload,
        .parser = { .is_daemon = true, .is_upload = true },
        .in = BUF_INIT(client->early_len + IN_MAX),
    };
    struct err err = { 0 };

    upgraded_add(upgraded, &intake.session);
    if (buf_add(&intake.in, client->early, client->early_len) < 0)
        upload->ops->close(upload);
    else
        serve(&intake, &err);
    upgraded_remove(upgraded, &intake.session);
    owner->on_end(owner->context, err.kind);
    buf_done(&intake.in);
}
