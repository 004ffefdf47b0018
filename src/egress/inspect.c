// SPDX-License-Identifier: Apache-2.0
/* What a client sends first, and each head of a plain HTTP connection. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/xalloc.h"
#include "egress/egress_internal.h"
#include "egress/hello.h"
#include "egress/http/session.h"

enum { PATH_MAX_SEEN = 2048, FAREWELL_MS = 2000 };

/* Tells the client of plain HTTP why. Nothing of the server was sent to it yet. */
static void page_send(struct connection *connection, const char *host, const char *reason)
{
    char body[1024], page[1400];
    int body_len = snprintf(body, sizeof(body),
                            "Holt: this sandbox may not reach '%.255s': %.400s\n"
                            "`holt net log` shows what was refused, `holt net allow` changes it.\n",
                            host, reason);
    int len = snprintf(page, sizeof(page),
                       "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\n"
                       "X-Holt-Reason: policy\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
                       body_len, body);

    (void)send(connection->client.watch.fd, page, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)shutdown(connection->client.watch.fd, SHUT_WR);
}

static int connection_refuse(struct connection *connection, const char *reason)
{
    struct egress *egress = connection->guest->egress;
    bool is_first = connection->state == CONNECTION_PEEK && connection->protocol == NET_HTTP;

    egress->counters.denied++;
    (void)snprintf(connection->rule, sizeof(connection->rule), "%s", reason);
    connection->is_allowed = false;
    if (!is_first) {
        connection_end(connection, true, "denied");
        return -EACCES;
    }
    page_send(connection, connection->name, reason);
    egress->peeking--;
    connection->state = CONNECTION_FAREWELL;
    connection->deadline_ms = egress->now_ms + FAREWELL_MS;
    return -EACCES;
}

/* Lets all bytes pass if a rule allows any: "tcp://", a name with a port that is not of the web, a
 * range. No rule that denies by what bytes say may exist then. */
static bool connection_pass(struct connection *connection)
{
    struct guest *guest = connection->guest;
    const struct asked asked = { .protocol = NET_TCP };
    struct net_verdict verdict;

    if (guest->denies_bytes ||
        !guest_decide(guest, &connection->destination, connection->port, &asked, &verdict))
        return false;
    (void)snprintf(connection->rule, sizeof(connection->rule), "%s", verdict.text);
    connection->protocol = NET_TCP;
    connection->is_decided = connection->is_allowed = connection->is_raw = true;
    connection->cleared = connection->in.len;
    if (!connection->name[0])
        connection_guess_name(connection);
    return true;
}

/* Refuses bytes in which no name can be read, unless they pass all the same. Returns as
 * connection_inspect does. */
static int connection_pass_or_refuse(struct connection *connection, const char *reason)
{
    return connection_pass(connection) ? 1 : connection_refuse(connection, reason);
}

/* Notes what was allowed, for the time when the policy changes or the grant of the name ends. */
static void connection_note(struct connection *connection, const struct asked *asked)
{
    const struct guest *guest = connection->guest;

    if (asked->name) { /* in its one spelling, by which grants are found */
        (void)net_name_normalize(asked->name, strlen(asked->name), connection->name);
        /* In mode open a name may be allowed that the address was not given out for. */
        if (grant_has_name(grant_find(connection->guest, &connection->destination),
                           connection->name, guest->egress->now_ms))
            memcpy(connection->granted_name, connection->name, sizeof(connection->granted_name));
    }
    if (asked->method) {
        (void)snprintf(connection->method, sizeof(connection->method), "%s", asked->method);
        free(connection->path);
        connection->path = xstrdup(asked->path);
    }
}

/* Decides by what the bytes say; clears nothing. */
static int connection_judge(struct connection *connection, struct asked *asked)
{
    struct net_verdict verdict;

    asked->granted_name = connection->granted_name;
    connection->protocol = asked->protocol;
    if (asked->name)
        (void)snprintf(connection->name, sizeof(connection->name), "%.*s", NET_NAME_MAX,
                       asked->name);
    if (!guest_decide(connection->guest, &connection->destination, connection->port, asked,
                      &verdict))
        return asked->name ? connection_refuse(connection, verdict.text)
                           : connection_pass_or_refuse(connection, verdict.text);
    connection_note(connection, asked);
    (void)snprintf(connection->rule, sizeof(connection->rule), "%s", verdict.text);
    connection->is_decided = connection->is_allowed = true;
    return 1;
}

bool connection_allows_request(struct connection *connection, const char *method, const char *path)
{
    struct asked asked = { .name = connection->name,
                           .protocol = NET_HTTPS,
                           .method = method,
                           .path = path,
                           .granted_name = connection->granted_name };
    struct net_verdict verdict;
    bool is_allowed = guest_decide(connection->guest, &connection->destination, connection->port,
                                   &asked, &verdict);

    (void)snprintf(connection->rule, sizeof(connection->rule), "%s", verdict.text);
    connection->is_allowed = is_allowed;
    if (is_allowed)
        connection_note(connection, &asked);
    return is_allowed;
}

/* The name of the ClientHello in its one spelling, if TLS to it must end here. */
static bool hello_ends_here(const struct connection *connection, const char *name,
                            char ret[NET_NAME_SIZE])
{
    return !net_name_normalize(name, strlen(name), ret) &&
           session_is_needed(connection->guest, ret, connection->port);
}

static int session_take(struct connection *connection, struct asked *asked)
{
    int r;

    asked->protocol = NET_HTTPS; /* each request is decided when it comes */
    r = connection_judge(connection, asked);
    if (r < 0)
        return r;
    return session_start(connection) < 0
               ? connection_refuse(connection, "there are too many TLS connections (built in)")
               : 1;
}

static int tls_inspect(struct connection *connection)
{
    struct hello hello;
    struct asked asked = { .protocol = NET_TLS };
    char name[NET_NAME_SIZE];
    int r = hello_parse(connection->in.data, connection->in.len, &hello);

    connection->protocol = NET_TLS;
    if (r == 0)
        return connection->in.len < HELLO_MAX
                   ? 0
                   : connection_pass_or_refuse(connection,
                                               "the ClientHello is too long (built in)");
    if (r < 0)
        return connection_pass_or_refuse(connection, "the ClientHello is malformed (built in)");
    if (hello.is_encrypted && connection->guest->mode == NET_ALLOW)
        return connection_pass_or_refuse(connection, "the ClientHello is encrypted (built in)");
    asked.name = hello.name[0] ? hello.name : NULL;
    if (asked.name && hello_ends_here(connection, hello.name, name)) {
        asked.name = name;
        return session_take(connection, &asked);
    }
    r = connection_judge(connection, &asked);
    if (r > 0) {
        connection->is_raw = true;
        connection->cleared = connection->in.len;
    }
    return r;
}

/* A Host field may name a port, which must be the one that is dialed. */
static const char *head_problem(const struct connection *connection, const struct http_head *head)
{
    if (head->port != 0 && head->port != connection->port)
        return "the Host field has another port (built in)";
    if (head->is_upgrade && connection->has_request)
        return "only the first request may ask for an upgrade (built in)";
    if (head->is_upgrade &&
        (head->body == HTTP_CHUNKED || (head->body == HTTP_LENGTH && head->length > 0)))
        return "a request for an upgrade may not have a body (built in)";
    return NULL;
}

/* The request is decided as it stands, and as a server may read it that heeds its fields. */
static int head_judge(struct connection *connection, const struct http_head *head,
                      struct asked *asked)
{
    char path[PATH_MAX_SEEN + 1];
    struct asked other = *asked;
    int r;

    if (head->other_path_len > PATH_MAX_SEEN)
        return connection_refuse(connection, "the path of a header is too long (built in)");
    if (head->other_method[0])
        other.method = head->other_method;
    if (head->other_path) {
        memcpy(path, head->other_path, head->other_path_len);
        path[head->other_path_len] = '\0';
        other.path = path;
    }
    r = head->other_method[0] || head->other_path ? connection_judge(connection, &other) : 1;
    return r > 0 && !connection->is_raw ? connection_judge(connection, asked) : r;
}

static int head_inspect(struct connection *connection)
{
    const char *data = connection->in.data + connection->cleared;
    size_t len = connection->in.len - connection->cleared;
    char path[PATH_MAX_SEEN + 1];
    struct http_head head;
    struct asked asked = { .protocol = NET_HTTP, .path = path };
    int r = http_head_parse(data, len, &head);

    connection->protocol = NET_HTTP;
    if (r == 0)
        return len < HTTP_HEAD_MAX
                   ? 0
                   : connection_pass_or_refuse(connection,
                                               "the head of the request is too long (built in)");
    if (r < 0 || head.path_len > PATH_MAX_SEEN)
        return connection_pass_or_refuse(connection,
                                         "the head of the request is malformed (built in)");
    memcpy(path, head.path, head.path_len);
    path[head.path_len] = '\0';
    asked.method = head.method;
    asked.name = head.host[0] ? head.host : NULL;
    if (head_problem(connection, &head)) {
        (void)snprintf(connection->name, sizeof(connection->name), "%.*s", NET_NAME_MAX, head.host);
        return connection_refuse(connection, head_problem(connection, &head));
    }
    r = head_judge(connection, &head, &asked);
    if (r < 0 || connection->is_raw)
        return r;
    /* Where the server has spoken before, it is too late to see its reply alone. */
    connection->awaits_upgrade =
        head.is_upgrade && connection->down.total == 0 && connection->down.len == 0;
    connection->has_request = true;
    connection->cleared += head.size;
    http_stream_begin(&connection->http, &head);
    return 1;
}

/* Whether a placeholder is in the bytes that were cleared; holtd is told. */
static bool placeholder_is_seen(struct connection *connection, size_t before)
{
    const struct broker_secrets *secrets = connection->guest->secrets;
    long found = needles_feed(secrets->placeholders, &connection->seen,
                              connection->in.data + before, connection->cleared - before);

    if (found >= 0)
        report_leak(connection->guest, &(struct egress_leak){ .secret = secrets->items[found].name,
                                                              .id = secrets->items[found].id,
                                                              .host = connection->name,
                                                              .port = connection->port,
                                                              .where = "plain" });
    return found >= 0;
}

/* Clears the rest of a body and the heads behind it. */
static int http_inspect(struct connection *connection)
{
    int r = connection->is_decided ? 1 : 0;
    size_t before = connection->cleared;

    while (connection->cleared < connection->in.len && !connection->awaits_upgrade) {
        if (connection->http.body != HTTP_NO_BODY) {
            long n = http_stream_pass(&connection->http, connection->in.data + connection->cleared,
                                      connection->in.len - connection->cleared);

            if (n < 0)
                return connection_pass_or_refuse(connection,
                                                 "the body of the request is malformed (built in)");
            connection->cleared += (size_t)n;
            continue;
        }
        r = head_inspect(connection);
        if (r <= 0)
            break;
    }
    if (r >= 0 && placeholder_is_seen(connection, before))
        return connection_refuse(connection, "the placeholder of a secret was sent in plain HTTP "
                                             "(built in)");
    /* An incomplete head behind a whole request waits, but what is cleared can go. */
    return r == 0 && connection->is_decided ? 1 : r;
}

int connection_inspect(struct connection *connection)
{
    const struct buf *in = &connection->in;
    struct asked asked = { .protocol = NET_TCP };
    int r;

    if (connection->is_raw) {
        connection->cleared = in->len;
        return 1;
    }
    if (in->len == 0)
        return 0;
    r = connection->is_decided ? 1 : http_head_is_http(in->data, in->len);
    if (r == 0) /* it may become a request; a client of another protocol may send nothing more */
        return connection_pass(connection) ? 1 : 0;
    if (r > 0)
        return http_inspect(connection);
    if (hello_is_tls(in->data, in->len))
        return tls_inspect(connection);
    r = connection_judge(connection, &asked);
    if (r > 0) {
        connection->is_raw = true;
        connection->cleared = in->len;
    }
    return r;
}
