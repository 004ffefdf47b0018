// SPDX-License-Identifier: Apache-2.0
/* Replies of a session: read, searched for values, written anew. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "egress/http/session_internal.h"

/* A reply that would carry a value back is cut. */
static int value_leak(struct session *session, long found)
{
    return session_leak(session, (size_t)found, "reply", "the reply has the value of a secret");
}

static int reply_fail(struct session *session)
{
    return session_refuse(session, 502, "the server's reply is malformed");
}

/* How the body goes to the client: chunks where its length is not known. */
static bool reply_is_chunked(const struct session *session, const struct http_reply *reply)
{
    return reply->framing != HTTP_EMPTY && !reply->has_length && !session->head.is_old;
}

static int fields_write(struct session *session, const struct http_reply *reply,
                        struct http_draft *draft)
{
    const struct http_fields *fields = &reply->fields;
    int r = 0;

    for (size_t i = 0; r == 0 && i < fields->count; i++) {
        const struct http_field *field = &fields->items[i];
        long found = session->rewrite.searches
                         ? needles_find(session->secrets->values, field->value.at, field->value.len)
                         : -1;

        if (found < 0 && session->rewrite.searches)
            found = needles_find(session->secrets->values, field->name.at, field->name.len);
        if (found >= 0)
            return value_leak(session, found);
        if (!http_field_is_hop(fields, field->name) && !http_text_is(field->name, "Content-Length"))
            r = http_draft_add(draft, field->name, field->value);
    }
    return r < 0 ? reply_fail(session) : 0;
}

static int framing_write(struct session *session, const struct http_reply *reply,
                         struct http_draft *draft)
{
    char length[32];
    int r = 0;

    (void)snprintf(length, sizeof(length), "%llu", (unsigned long long)reply->length);
    if (reply->status == 101) {
        r = http_draft_add_text(draft, "Connection", "Upgrade");
        return r == 0 ? http_draft_add_text(draft, "Upgrade", "websocket") : r;
    }
    if (reply->status < 200)
        return 0;
    if (reply->has_length && reply->status != 204)
        r = http_draft_add_text(draft, "Content-Length", length);
    else if (reply_is_chunked(session, reply))
        r = http_draft_add_text(draft, "Transfer-Encoding", "chunked");
    else if (reply->framing != HTTP_EMPTY)
        session->closes = true; /* an old client reads until the end */
    return r == 0 && session->closes ? http_draft_add_text(draft, "Connection", "close") : r;
}

static int head_write(struct session *session, const struct http_reply *reply)
{
    struct http_draft draft;
    struct buf *out = &session->to_client;
    long found = session->rewrite.searches
                     ? needles_find(session->secrets->values, reply->reason.at, reply->reason.len)
                     : -1;
    int r;

    if (found >= 0)
        return value_leak(session, found);
    http_draft_init(&draft);
    r = fields_write(session, reply, &draft);
    if (r == 0) {
        r = framing_write(session, reply, &draft);
        if (r == 0)
            r = buf_printf(out, "HTTP/1.1 %03u %.*s\r\n", reply->status, (int)reply->reason.len,
                           reply->reason.at);
        if (r == 0)
            r = http_draft_write(&draft, out);
        r = r < 0 ? reply_fail(session) : 0;
    }
    http_draft_done(&draft);
    return r;
}

/* The final head: what follows is the body, or another protocol. */
static int body_begin(struct session *session, const struct http_reply *reply)
{
    const struct http_field *encoding = http_field_find(&reply->fields, "Content-Encoding");
    const struct needles *values = session->rewrite.searches ? session->secrets->values : NULL;
    bool has_body = reply->framing != HTTP_EMPTY;

    if (sieve_start(&session->down_sieve, values,
                    encoding && has_body ? encoding->value : (struct http_text){ "", 0 },
                    reply_is_chunked(session, reply)) < 0)
        return session_refuse(session, 502,
                              "the reply is encoded in a way that cannot be searched for secrets");
    return 0;
}

static int head_pass(struct session *session, const struct http_reply *reply)
{
    bool is_final = reply->status >= 200 || reply->status == 101;
    int r = 0;

    if (reply->status == 101 && !session->is_upgrade)
        return reply_fail(session);
    if (!is_final && session->head.is_old)
        return 0;
    if (is_final)
        r = body_begin(session, reply);
    if (r == 0)
        r = head_write(session, reply);
    if (r < 0 || !is_final)
        return r;
    session->has_reply_head = true;
    session->server_closes = reply->ends;
    http_body_start(&session->down, reply->framing, reply->length);
    if (reply->status == 101) {
        session->phase = SESSION_TUNNEL;
        return sieve_start(&session->up_sieve, session->secrets->placeholders,
                           (struct http_text){ "", 0 }, false);
    }
    return 0;
}

static int body_end(struct session *session)
{
    session->is_reply_over = true;
    if (session->down.framing == HTTP_EMPTY)
        return 1;
    return sieve_end(&session->down_sieve, &session->to_client) < 0 ? reply_fail(session) : 1;
}

static int body_push(struct session *session, struct http_text data)
{
    int r =
        data.len > 0 ? sieve_push(&session->down_sieve, data.at, data.len, &session->to_client) : 0;

    if (r == -EACCES)
        return value_leak(session, session->down_sieve.found);
    return r < 0 ? reply_fail(session) : 0;
}

/* --- HTTP/1.1 --- */

/* The server has ended its side: the end of a body of unknown length, or too early. */
static int server_ended(struct session *session, bool is_announced)
{
    session->server_closes = true;
    if (session->has_reply_head && session->down.framing == HTTP_UNTIL_CLOSE && is_announced)
        return body_end(session);
    if (session->has_reply_head) {
        connection_end(session->connection, true, "cut by the server");
        return -EACCES;
    }
    if (session->connection->down.total > 0) { /* as a kept connection that the server has closed */
        connection_end(session->connection, false, "closed by the server");
        return -EACCES;
    }
    return session_refuse(session, 502, "the server has closed the connection without a reply");
}

static int reply_take(struct session *session)
{
    struct buf *in = &session->from_server;
    struct http_reply reply;
    struct http_text data;
    long used;
    int r;

    if (!session->has_reply_head) {
        r = http_reply_parse(in->data, in->len, strcmp(session->head.method, "HEAD") == 0, &reply);
        if (r <= 0)
            return r < 0 ? reply_fail(session) : 0;
        r = head_pass(session, &reply);
        if (r < 0)
            return r;
        buf_consume(in, reply.size);
        return session->has_reply_head && session->phase == SESSION_EXCHANGE &&
                       session->down.is_done
                   ? body_end(session)
                   : 1;
    }
    used =
        http_body_take(&session->down, in->data, sieve_share(&session->down_sieve, in->len), &data);
    if (used < 0)
        return reply_fail(session);
    r = body_push(session, data);
    if (r < 0)
        return r;
    buf_consume(in, (size_t)used);
    if (!session->down.is_done)
        return 1;
    if (in->len > 0)
        session->server_closes = true; /* nothing was asked for that could follow */
    return body_end(session);
}

/* --- HTTP/2 --- */

static void reply_of_h2(const struct h2_reply *from, bool is_head, struct http_reply *ret)
{
    *ret = (struct http_reply){ .status = from->status, .reason = { "", 0 } };
    ret->framing = HTTP_UNTIL_CLOSE;
    for (size_t i = 0; i < from->fields.count; i++) {
        struct http_text name = http_draft_name(&from->fields, i);
        struct http_text value = http_draft_value(&from->fields, i);

        ret->fields.items[ret->fields.count++] = (struct http_field){ name, value };
        if (http_text_is(name, "content-length") && value.len > 0 && value.len < 19) {
            ret->has_length = true;
            ret->length = 0;
            for (size_t j = 0; j < value.len; j++)
                ret->length = ret->length * 10 + (uint64_t)(value.at[j] - '0');
        }
    }
    if (is_head || ret->status == 204 || ret->status == 304)
        ret->framing = HTTP_EMPTY;
}

static int h2_take(struct session *session)
{
    struct h2_reply *from = h2_reply(session->h2);
    int r;

    if (from->is_failed) {
        session->server_closes = true;
        return session_refuse(session, 502, "the server has reset the HTTP/2 stream");
    }
    if (!session->has_reply_head && from->status >= 200) {
        struct http_reply reply;

        reply_of_h2(from, strcmp(session->head.method, "HEAD") == 0, &reply);
        r = head_pass(session, &reply);
        return r < 0 ? r : 1;
    }
    if (!session->has_reply_head)
        return 0;
    if (from->data.len > 0) {
        size_t len = sieve_share(&session->down_sieve,
                                 from->data.len < SESSION_BUFFER ? from->data.len : SESSION_BUFFER);

        r = body_push(session, (struct http_text){ from->data.data, len });
        if (r < 0)
            return r;
        h2_consume(session->h2, len);
        return 1;
    }
    return from->is_ended ? body_end(session) : 0;
}

/* --- both --- */

static int server_read(struct session *session)
{
    long n = session_read(&session->server, &session->from_server);

    if (n < 0) {
        if (session->h2)
            return session_refuse(session, 502, "the server has closed the connection");
        return server_ended(session, n == -EPIPE);
    }
    if (n > 0 && session->h2) {
        if (h2_receive(session->h2, session->from_server.data, session->from_server.len) < 0)
            return reply_fail(session);
        buf_clear(&session->from_server);
    }
    return n > 0;
}

int session_reply_step(struct session *session)
{
    int r;

    if (session->is_reply_over || session->to_client.len >= SESSION_BUFFER)
        return 0;
    r = session->h2 ? h2_take(session) : session->from_server.len > 0 ? reply_take(session) : 0;
    if (r != 0 || session->phase != SESSION_EXCHANGE)
        return r;
    return server_read(session);
}

/* --- WebSocket --- */

/* Clients mask what they send, and a text may be in several frames, so the frames are read, too.
 * Returns the tag of a text, or -1. */
static long frames_look(struct session_frames *frames, const struct needles *needles,
                        const struct buf *in)
{
    cleanup_with(buf_done) struct buf payload = BUF_INIT((size_t)2 * SESSION_BUFFER);
    size_t len;
    long found;

    if (!needles || buf_reserve(&payload, in->len) < 0)
        return -1;
    len = websocket_read(&frames->reader, in->data, in->len, payload.data);
    found = needles_feed(needles, &frames->seen, payload.data, len);
    explicit_bzero(payload.data, len);
    return found;
}

static int tunnel_move(struct session *session, bool is_up)
{
    struct channel *from = is_up ? &session->client : &session->server;
    struct buf *in = is_up ? &session->from_client : &session->from_server;
    struct buf *out = is_up ? &session->to_server : &session->to_client;
    struct sieve *sieve = is_up ? &session->up_sieve : &session->down_sieve;
    long n;
    int r;

    if (out->len >= SESSION_BUFFER)
        return 0;
    if (is_up)
        session->is_client_early = false;
    n = in->len > 0 ? 1 : session_read(from, in);
    if (n < 0) {
        if (out->len > 0)
            return 0;
        connection_end(session->connection, n != -EPIPE, "closed");
        return -EACCES;
    }
    if (n == 0)
        return 0;
    sieve->found =
        frames_look(is_up ? &session->frames_up : &session->frames_down, sieve->needles, in);
    r = sieve->found >= 0 ? -EACCES : sieve_push(sieve, in->data, in->len, out);
    if (r < 0 && sieve->found >= 0)
        return session_leak(session, (size_t)sieve->found, is_up ? "body" : "reply",
                            "a secret was seen in a WebSocket");
    if (r < 0)
        return reply_fail(session);
    buf_clear(in);
    return 1;
}

int session_tunnel_step(struct session *session)
{
    int up = tunnel_move(session, true), down;

    if (up < 0)
        return up;
    down = tunnel_move(session, false);
    return down < 0 ? down : up > 0 || down > 0;
}
