/* The daemon's HTTP server: a unix socket and, if configured, TCP. It knows listeners, connections
 * and tokens; the protocols are front ends (http/frontend.h) that the daemon hands to it. */
#pragma once

#include <stddef.h>

struct err;
struct frontend;
struct http_server;
struct session_store;
struct token_store;

struct http_options {
    const char *run_dir;   /* gets holt.sock */
    const char *state_dir; /* has the token for TCP, made when missing */
    const char *listen;    /* "ADDR:PORT", or "none" */
    const char *hosts;     /* listen.hosts and listen.origins of the configuration */
    const char *origins;
    const char *preview;  /* preview.domain of the configuration; "": none */
    const char *tls_cert; /* "": no TLS */
    const char *tls_key;
    struct token_store *tokens;
    struct session_store *sessions; /* NULL: none */
    const char *socket_owners;      /* of the configuration, see auth/peer.h */
    struct frontend *frontends;     /* in order of precedence; must outlive the server */
    size_t frontend_count;

    /* Fails with ShuttingDown once the daemon stops. */
    int (*check_open)(void *context, struct err *err);
    void *context;
};

/* Listens on <run>/holt.sock and, unless listen is "none", on TCP, where every request needs a
 * token. Requests are answered when this returns. The caller must be the only daemon of the run
 * directory: a socket file found there is stale and gets replaced. */
int http_start(const struct http_options *options, struct http_server **ret, struct err *err);

/* Accepts no more connections, lets calls in progress end, and tells clients that wait or follow a
 * stream that the daemon is shutting down (host_drain comes first). Returns when all clients have
 * gone, or after this time. Accepts NULL. */
void http_drain(struct http_server *http, unsigned ms);

/* Disconnects every client, waits for the requests in progress and removes the socket file.
 * Accepts NULL. */
void http_stop(struct http_server *http);
