/* The parts of a session. */
#pragma once

#include "egress/egress_internal.h"
#include "egress/http/h2.h"
#include "egress/http/message.h"
#include "egress/http/rewrite.h"
#include "egress/http/session.h"
#include "egress/http/sieve.h"
#include "egress/http/websocket.h"
#include "egress/tls/channel.h"

/* What is looked at of a WebSocket in one direction: the payloads of its frames, without masks. */
struct session_frames {
    struct websocket_reader reader;
    struct needle_stream seen;
};

enum {
    SESSION_BUFFER = 64 * 1024, /* bytes on the way above which nothing is read */
    SESSION_JSON_MAX = 1024 * 1024,
};

enum session_phase {
    SESSION_SHAKE,   /* the handshake with the client */
    SESSION_IDLE,    /* waits for the head of a request */
    SESSION_COLLECT, /* waits for the whole body */
    SESSION_DIAL,    /* connection.c dials the server */
    SESSION_CONNECT, /* the handshake with the server */
    SESSION_EXCHANGE,
    SESSION_TUNNEL, /* WebSocket */
    SESSION_CLOSE,  /* the last bytes go to the client */
};

struct session {
    struct connection *connection;
    enum session_phase phase;
    struct channel client, server;
    bool is_client_early; /* it sent something that is not read yet */
    bool is_busy;         /* it has more to do at the next turn */
    struct buf from_client, to_server, from_server, to_client;
    struct h2 *h2;     /* NULL: the server speaks HTTP/1.1 */
    struct buf upload; /* of HTTP/2: the body before it is framed */

    /* the request under way */
    struct broker_secrets *secrets;
    struct http_head head;
    struct rewrite rewrite;
    struct buf collected;
    struct http_body_reader up;
    struct sieve up_sieve;
    bool is_upgrade, is_request_over;
    bool closes; /* the client's connection ends behind the reply */

    /* its reply */
    struct http_body_reader down;
    struct sieve down_sieve;
    bool has_reply_head, is_reply_over, server_closes;

    struct session_frames frames_up, frames_down; /* of a WebSocket */
};

/* --- session_request.c --- */

/* Each step returns 1 if something was done, 0 if it waits, -EACCES after a refusal. */
int session_request_step(struct session *session);
int session_collect_step(struct session *session);

/* Moves the body from the client to the server. */
int session_upload_step(struct session *session);

/* Writes the head for the server, whose connection is ready. Returns 0 or -errno. */
int session_request_send(struct session *session);

/* --- session_reply.c --- */

int session_reply_step(struct session *session);
int session_tunnel_step(struct session *session);

/* --- session.c --- */

/* Answers with a page instead of a reply and ends the connection, or resets it if it is too late.
 * Returns -EACCES. */
int session_refuse(struct session *session, unsigned status, const char *reason);

/* Tells holtd of a secret that was seen where it must not be, and ends the connection. */
int session_leak(struct session *session, size_t secret, const char *where, const char *reason);

/* Reads from a side into a buffer. Returns the bytes, 0 for now, or -errno. */
long session_read(struct channel *channel, struct buf *into);
