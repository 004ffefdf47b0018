// SPDX-License-Identifier: Apache-2.0
/* Requests of a session: read, decided, written anew. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "egress/http/session_internal.h"

enum { PATH_MAX_SEEN = 2048, HTTPS_PORT = 443, AUTHORITY_SIZE = NET_NAME_SIZE + 8 };

static struct rewrite_way session_way(const struct session *session)
{
    const struct guest *guest = session->connection->guest;

    return (struct rewrite_way){ .secrets = session->secrets,
                                 .name = session->connection->name,
                                 .port = session->connection->port,
                                 .has_own_path = guest->upstream || guest->ca_bundle };
}

static int rewrite_fail(struct session *session)
{
    const struct rewrite *rewrite = &session->rewrite;

    return rewrite->where ? session_leak(session, rewrite->secret, rewrite->where, rewrite->problem)
                          : session_refuse(session, 403, rewrite->problem);
}

static bool method_is_trace(const char *method)
{
    return strcasecmp(method, "TRACE") == 0 || strcasecmp(method, "TRACK") == 0;
}

/* The name of the ClientHello, of the Host field and of the certificate must be one. */
static const char *head_problem(const struct session *session)
{
    const struct http_head *head = &session->head;
    const struct connection *connection = session->connection;
    char name[NET_NAME_SIZE];

    if (head->host[0] && (net_name_normalize(head->host, strlen(head->host), name) ||
                          strcmp(name, connection->name) != 0))
        return "the Host field is not the name of the ClientHello (built in)";
    if (head->port != 0 && head->port != connection->port)
        return "the Host field has another port (built in)";
    if (method_is_trace(head->method) || method_is_trace(head->other_method))
        return "TRACE sends a request back, with the secrets in it (built in)";
    if (head->is_upgrade &&
        (head->body == HTTP_CHUNKED || (head->body == HTTP_LENGTH && head->length > 0)))
        return "a request for an upgrade may not have a body (built in)";
    if (head->path_len > PATH_MAX_SEEN || head->other_path_len > PATH_MAX_SEEN)
        return "the path is too long (built in)";
    return NULL;
}

static bool request_is_allowed(struct session *session, const char *method, const char *path,
                               size_t path_len)
{
    char text[PATH_MAX_SEEN + 1];

    memcpy(text, path, path_len);
    text[path_len] = '\0';
    return connection_allows_request(session->connection, method, text);
}

/* The request is decided as it stands, and as a server may read it that heeds its fields. */
static int request_decide(struct session *session)
{
    const struct connection *connection = session->connection;
    const struct http_head *head = &session->head;
    const char *method = head->other_method[0] ? head->other_method : head->method;
    const char *path = head->other_path ? head->other_path : head->path;
    size_t path_len = head->other_path ? head->other_path_len : head->path_len;

    /* Where no rule looks at requests, the connection was decided; a new policy reviews it. */
    if (!net_policy_reads_https(&connection->guest->policy, connection->name, connection->port))
        return 0;
    if ((method != head->method || path != head->path) &&
        !request_is_allowed(session, method, path, path_len))
        return session_refuse(session, 403, connection->rule);
    return request_is_allowed(session, head->method, head->path, head->path_len)
               ? 0
               : session_refuse(session, 403, connection->rule);
}

static void body_begin(struct session *session)
{
    static const enum http_framing framings[] = {
        [HTTP_NO_BODY] = HTTP_EMPTY, [HTTP_LENGTH] = HTTP_SIZED, [HTTP_CHUNKED] = HTTP_CHUNKS
    };

    http_body_start(&session->up, framings[session->head.body], session->head.length);
    session->is_request_over = session->up.is_done;
}

/* What a connection keeps of the request before is forgotten. */
static void exchange_reset(struct session *session)
{
    const struct guest *guest = session->connection->guest;

    rewrite_done(&session->rewrite);
    rewrite_init(&session->rewrite);
    broker_secrets_unref(session->secrets);
    session->secrets = broker_secrets_ref(guest->secrets);
    session->has_reply_head = session->is_reply_over = session->server_closes = false;
    session->is_upgrade = false;
}

static int server_start(struct session *session)
{
    struct connection *connection = session->connection;

    connection->deadline_ms = 0;
    if (session->server.ssl && !session->is_upgrade) {
        if (session_request_send(session) < 0)
            return session_refuse(session, 502, "the request cannot be sent");
        session->phase = SESSION_EXCHANGE;
        return 1;
    }
    if (session->server.ssl)
        return session_refuse(session, 403, "only the first request may ask for an upgrade");
    session->phase = SESSION_DIAL;
    connection_dial(connection);
    return 0;
}

static int head_take(struct session *session)
{
    struct http_fields fields;
    struct rewrite_way way;
    const struct http_field *close, *encoding;
    const char *problem;

    exchange_reset(session);
    way = session_way(session);
    problem = head_problem(session);
    if (problem)
        return session_refuse(session, 403, problem);
    if (http_fields_parse(session->from_client.data, session->head.size, &fields) < 0)
        return session_refuse(session, 400, "the head of the request is malformed");
    if (request_decide(session) < 0)
        return -EACCES;
    if (rewrite_head(&way, &session->head, &fields, &session->rewrite) < 0)
        return rewrite_fail(session);
    close = http_field_find(&fields, "Connection");
    session->closes = session->head.is_old || (close && http_list_has(close->value, "close"));
    session->is_upgrade = session->head.is_upgrade;
    body_begin(session);
    encoding = http_field_find(&fields, "Content-Encoding");
    if (sieve_start(&session->up_sieve, session->secrets->placeholders,
                    encoding ? encoding->value : (struct http_text){ "", 0 }, false) < 0)
        (void)sieve_start(&session->up_sieve, NULL, (struct http_text){ "", 0 }, false);
    buf_consume(&session->from_client, session->head.size);
    if (session->rewrite.wants_json && !session->is_request_over) {
        session->collected = (struct buf)BUF_INIT(SESSION_JSON_MAX);
        session->phase = SESSION_COLLECT;
        session->connection->deadline_ms = 0;
        http_draft_remove(&session->rewrite.draft, "Expect");
        return http_field_find(&fields, "Expect") &&
                       buf_add_str(&session->to_client, "HTTP/1.1 100 Continue\r\n\r\n") < 0
                   ? -EACCES
                   : 1;
    }
    return server_start(session);
}

int session_request_step(struct session *session)
{
    struct buf *in = &session->from_client;
    int r = in->len > 0 ? http_head_parse(in->data, in->len, &session->head) : 0;
    long n;

    if (r < 0) {
        session->has_reply_head = false;
        return session_refuse(session, 400, "the head of the request is malformed (built in)");
    }
    if (r > 0)
        return head_take(session);
    session->is_client_early = false;
    n = session_read(&session->client, in);
    if (n < 0) {
        connection_end(session->connection, n != -EPIPE, "closed");
        return -EACCES;
    }
    return n > 0;
}

/* --- bodies --- */

/* Returns 1 when there are bytes of the client, 0 if not yet, -EACCES when it has gone. */
static int client_bytes(struct session *session)
{
    long n;

    if (session->from_client.len > 0)
        return 1;
    session->is_client_early = false;
    n = session_read(&session->client, &session->from_client);
    if (n < 0) {
        connection_end(session->connection, true, "closed in a request");
        return -EACCES;
    }
    return n > 0;
}

static int body_fail(struct session *session, int r)
{
    if (r == -EACCES)
        return session_leak(session, (size_t)session->up_sieve.found, "body",
                            "the placeholder of a secret stands in the body");
    return session_refuse(session, 400, "the body of the request is malformed");
}

int session_collect_step(struct session *session)
{
    struct rewrite_way way = session_way(session);
    struct http_text data;
    int r = client_bytes(session);
    long used;

    if (r <= 0)
        return r;
    used = http_body_take(&session->up, session->from_client.data, session->from_client.len, &data);
    if (used < 0)
        return body_fail(session, -EBADMSG);
    if (data.len > 0 && buf_add(&session->collected, data.at, data.len) < 0)
        return session_refuse(session, 413, "the body is too long for a secret in it");
    buf_consume(&session->from_client, (size_t)used);
    if (!session->up.is_done)
        return 1;
    if (rewrite_json(&way, &session->collected, &session->rewrite) < 0)
        return rewrite_fail(session);
    session->is_request_over = true;
    return server_start(session);
}

static int upload_end(struct session *session, struct buf *out)
{
    if (sieve_end(&session->up_sieve, out) < 0)
        return body_fail(session, -ENOBUFS);
    session->is_request_over = true;
    if (session->h2)
        h2_upload(session->h2, true);
    return 1;
}

int session_upload_step(struct session *session)
{
    struct buf *out = session->h2 ? &session->upload : &session->to_server;
    struct http_text data;
    long used;
    int r;

    if (out->len >= SESSION_BUFFER || session->to_server.len >= SESSION_BUFFER)
        return 0;
    r = client_bytes(session);
    if (r <= 0)
        return r;
    used = http_body_take(&session->up, session->from_client.data,
                          sieve_share(&session->up_sieve, session->from_client.len), &data);
    if (used < 0)
        return body_fail(session, -EBADMSG);
    if (data.len > 0)
        r = sieve_push(&session->up_sieve, data.at, data.len, out);
    if (r < 0)
        return body_fail(session, r);
    buf_consume(&session->from_client, (size_t)used);
    if (session->up.is_done)
        return upload_end(session, out);
    if (session->h2)
        h2_upload(session->h2, false);
    return 1;
}

/* --- sending --- */

static void authority_text(const struct connection *connection, char ret[AUTHORITY_SIZE])
{
    if (connection->port == HTTPS_PORT)
        (void)snprintf(ret, AUTHORITY_SIZE, "%s", connection->name);
    else
        (void)snprintf(ret, AUTHORITY_SIZE, "%s:%u", connection->name, connection->port);
}

/* The fields that frame the body: its length, or chunks. */
static int framing_add(struct session *session)
{
    struct http_draft *draft = &session->rewrite.draft;
    char length[32];

    if (session->rewrite.wants_json && session->collected.data)
        (void)snprintf(length, sizeof(length), "%zu", session->collected.len);
    else if (session->head.body == HTTP_LENGTH)
        (void)snprintf(length, sizeof(length), "%llu", (unsigned long long)session->head.length);
    else if (session->head.body == HTTP_CHUNKED && !session->h2)
        return http_draft_add_text(draft, "Transfer-Encoding", "chunked");
    else
        return 0;
    return http_draft_add_text(draft, "Content-Length", length);
}

static int head_write(struct session *session)
{
    struct http_draft *draft = &session->rewrite.draft;
    char authority[AUTHORITY_SIZE];
    struct buf *out = &session->to_server;
    int r;

    authority_text(session->connection, authority);
    if (session->is_upgrade) {
        r = http_draft_add_text(draft, "Connection", "Upgrade");
        if (r == 0)
            r = http_draft_add_text(draft, "Upgrade", "websocket");
        if (r < 0)
            return r;
    }
    r = buf_reserve(out, session->rewrite.target.len + draft->text.len + 2048);
    if (r == 0)
        r = buf_printf(out, "%s %s HTTP/1.1\r\nHost: %s\r\n", session->head.method,
                       session->rewrite.target.data, authority);
    if (r == 0)
        r = http_draft_write(draft, out);
    if (r == 0 && session->collected.len > 0)
        r = buf_add(out, session->collected.data, session->collected.len);
    return r;
}

static int head_submit(struct session *session)
{
    char authority[AUTHORITY_SIZE];
    bool has_body = !session->is_request_over || session->collected.len > 0;
    int r = 0;

    authority_text(session->connection, authority);
    buf_clear(&session->upload);
    session->upload.max = SESSION_JSON_MAX + BROKER_VALUE_MAX * 8;
    if (session->collected.len > 0)
        r = buf_add(&session->upload, session->collected.data, session->collected.len);
    if (r == 0)
        r = h2_request(session->h2,
                       &(struct h2_request){
                           .method = session->head.method,
                           .authority = authority,
                           .target = { session->rewrite.target.data, session->rewrite.target.len },
                           .fields = &session->rewrite.draft,
                           .upload = has_body ? &session->upload : NULL });
    if (r == 0 && has_body && session->is_request_over)
        h2_upload(session->h2, true);
    return r;
}

int session_request_send(struct session *session)
{
    int r = framing_add(session);

    session->up_sieve.is_chunked = session->head.body == HTTP_CHUNKED && !session->h2;
    session->to_server.max = SESSION_JSON_MAX + (size_t)4 * SESSION_BUFFER;
    if (r == 0)
        r = session->h2 ? head_submit(session) : head_write(session);
    if (session->collected.data)
        explicit_bzero(session->collected.data, session->collected.cap);
    buf_done(&session->collected);
    http_draft_done(&session->rewrite.draft);
    return r;
}
