/* How long clients may take. libmicrohttpd's own idle time starts again with every byte, so a
 * client that sends one now and then would stay for ever; here a connection has a moment at which
 * it is cut, and whoever serves it moves that moment on when the client has got somewhere. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct connection_limits;
struct client_connection;

enum {
    CONNECTION_FIRST_MS = 10 * 1000, /* from the connection to the end of its first header */
    CONNECTION_IDLE_MS = 120 * 1000, /* from an answer to the end of the next header, and for
                                   reading an answer */
    CONNECTION_KEPT_MS = 640 * 1000, /* the same of E2B's clients, which send no request again that
                                   met the end of a connection */
    CONNECTION_BODY_MS = 10 * 1000,  /* for the body, and a second more for each of these bytes */
    CONNECTION_BYTES_PER_S = 16 * 1024,
    CONNECTION_LATE_MS =
        30 * 1000, /* that a stream whose time is over may take for its last words */
};

#define CONNECTION_FOREVER UINT64_MAX

/* Starts the thread that looks at all connections of a listener. Where there are more than crowd, a
 * new one pushes out one that nobody serves, so that the silent keep nobody out; and where there
 * are more than share of one address (0: any number), one of that address. */
int connection_limits_start(size_t crowd, size_t share, struct connection_limits **ret,
                            struct err *err);

/* Every connection looks as if its client had hung up, but can still be written to. */
void connection_limits_drain(struct connection_limits *limits);

/* Waits until there is no connection any more, or until this moment of clock_ns. */
void connection_limits_await_empty(struct connection_limits *limits, uint64_t until_ns);

/* All connections must be gone. Accepts NULL. */
void connection_limits_stop(struct connection_limits *limits);

/* A new connection, which has CONNECTION_FIRST_MS. */
struct client_connection *connection_limits_add(struct connection_limits *limits, int fd);

/* To be called before the socket is closed. Accepts NULL. */
void connection_limits_remove(struct connection_limits *limits, struct client_connection *client);

/* How many connections there are now, of all listeners. */
unsigned connection_limits_count(void);

/* The connection is cut in this many milliseconds, or never. */
void client_connection_allow(struct client_connection *client, uint64_t ms);

/* Bytes have come, or must be gone: so much later. */
void client_connection_extend(struct client_connection *client, uint64_t bytes);

/* From this moment on (of clock_ns; CONNECTION_FOREVER: never) the call is late: the
 * connection looks as if the client had hung up, so that whoever waits with an eye on it stops, but
 * can still be written to. A stream's is cut a little later, since nobody else sees that its client
 * does not read. */
void client_connection_set_deadline(struct client_connection *client, uint64_t deadline_ns,
                                    bool is_stream);
