/* One HTTP request and its reply, as a front end sees it. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/token_store.h"
#include "base/buf.h"
#include "base/err.h"
#include "http/origin.h"

struct client_connection;
struct envelope;
struct frontend;
struct peer_rules;
struct refusal;
struct session_store;
struct upgraded_connections;

enum {
    EXCHANGE_BODY_MAX = 4 * 1024 * 1024, /* of a request with one message */
    LISTENER_ADDRESS_SIZE = 1024,
};

/* Where requests come in. */
struct listener {
    bool is_local; /* the unix socket: protected by its mode, so no token is needed */
    bool is_tls;
    bool is_tcp_tls; /* the TCP listener has TLS, whichever this one is */
    struct origin_rules origin_rules;
    const char *tcp_address; /* ADDR:PORT of the TCP listener; "": there is none */
    struct token_store *tokens;
    struct session_store *sessions; /* logins to the console; NULL: none */
    const struct peer_rules *peers; /* NULL: all peers of the unix socket are root */
    struct upgraded_connections *upgraded;
    struct frontend *frontends; /* in order of precedence */
    size_t frontend_count;
    unsigned inner_max; /* connections of the server to itself, see http/inner.h */

    /* Fails with ShuttingDown once the daemon stops. */
    int (*check_open)(void *context, struct err *err);
    void *context;
};

struct exchange {
    const struct listener *listener;
    struct MHD_Connection *connection;
    int connection_fd; /* hangs up when the client goes away */
    struct client_connection *client;
    char *target;     /* path and query as the client wrote them */
    const char *path; /* decoded, without query; libmicrohttpd's, as the verb */
    const char *verb;

    const struct frontend *frontend; /* NULL: no front end owns the path */
    void *state;                     /* the front end's own */
    struct caller caller;            /* ROLE_NONE: the token is missing or not valid */
    bool is_unauthenticated;       /* refused by its origin or token: little of its body is read */
    const struct refusal *refusal; /* why the request is refused; NULL: it is not */

    struct buf body;
    size_t discarded; /* bytes of the body that were read and dropped */
    struct err err;   /* why the request fails, known before its body is complete */
    bool is_failed;
    uint64_t deadline_ns; /* given by the client (clock_ns), or CONNECTION_FOREVER */
    uint64_t started_ns;
    bool is_begun;
};

/* Writes the name and port that clients on TCP use for the daemon: the first of listen.hosts, or
 * the name in listen, or localhost. Returns false if the daemon does not listen on TCP. */
bool listener_name(const struct listener *listener, char *ret, size_t size);

/* Writes the name, with a port if one is needed, below which browsers find previews of ports, and
 * whether that is over TLS: preview.domain, or localhost. Returns false as above. */
bool listener_preview(const struct listener *listener, char *ret, size_t size, bool *ret_is_tls);

/* A header of the request, or NULL. */
const char *exchange_header(const struct exchange *exchange, const char *name);

/* Whether the call has taken longer than its deadline; then sets err. */
bool exchange_is_late(const struct exchange *exchange, struct err *err);

/* Whether the daemon is shutting down, or the call's token has become invalid; then sets err. */
bool exchange_is_stopped(const struct exchange *exchange, struct err *err);

/* Sets err if a call was canceled by its deadline, a shutdown or the removal of its token, and not
 * by its client. */
void exchange_explain_cancel(const struct exchange *exchange, struct err *err);

/* Why the origin check refuses the request, or NULL. `host` is the name that the request is
 * addressed to. A web page that sends it must be configured, unless any origin may. */
const struct refusal *exchange_check_origin(const struct exchange *exchange, const char *host,
                                            bool allows_any_origin);

/* Finds the caller: by its token or session, on the unix socket by the peer, on an inner connection
 * as it was given. Returns why the request is refused if there is none, else NULL. */
const struct refusal *exchange_find_caller(struct exchange *exchange);

/* Whether a front end other than this one owns the path. */
bool exchange_is_owned_by_other(const struct exchange *exchange, const struct frontend *frontend);

/* Takes the client's Connect-Timeout-Ms as the deadline, counted from the start of the request. */
int exchange_read_timeout(struct exchange *exchange, struct err *err);

/* Drops a piece of the body. MHD_NO once the client has sent too much of a refused body. */
enum MHD_Result exchange_discard(struct exchange *exchange, size_t len);

/* Fails the request with ERR_EXHAUSTED, as its body is too large, and frees the body. */
void exchange_fail_too_large(struct exchange *exchange);

/* Finds the one enveloped message that the body of a stream's request consists of. */
int exchange_unwrap(const struct exchange *exchange, size_t max, struct envelope *ret,
                    struct err *err);
