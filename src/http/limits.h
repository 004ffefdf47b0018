/* Connection limits: how many connections there may be, and how long each may take.
 *
 * libmicrohttpd's idle timeout restarts with every byte, so a client that sends one now and then
 * could stay for ever. Here every connection has a time at which it is closed; the request that it
 * serves moves that time when the client makes progress. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct connection_limits;
struct client_connection;
struct sockaddr;

enum {
    CONNECTION_FIRST_MS = 10 * 1000, /* from the connection to the end of its first header */
    CONNECTION_IDLE_MS = 120 * 1000, /* from a reply to the end of the next header, and for
                                        reading a reply */
    CONNECTION_KEPT_MS = 640 * 1000, /* the same for E2B's clients, which do not repeat a request
                                        that met a closed connection */
    CONNECTION_BODY_MS = 10 * 1000,  /* for the body, and one second per BYTES_PER_S bytes */
    CONNECTION_BYTES_PER_S = 16 * 1024,
    CONNECTION_LATE_MS = 30 * 1000, /* for a stream past its deadline to send its end */
};

#define CONNECTION_FOREVER UINT64_MAX

struct connection_rules {
    size_t
        crowd; /* a connection beyond so many closes an idle one: silent clients keep nobody out */
    size_t share; /* the same for the connections of one address; 0: no limit */

    /* Whether the token of this id is still valid. Called with the lock of the connections. */
    bool (*is_token_valid)(void *context, const char *id);
    void *context;
};

/* Starts the thread that checks the connections of a listener. */
int connection_limits_start(const struct connection_rules *rules, struct connection_limits **ret,
                            struct err *err);

/* Shuts down the reading half of every connection: calls see a client that has gone, and can still
 * reply. */
void connection_limits_drain(struct connection_limits *limits);

/* Waits until no connection is left, or until this time (clock_ns). */
void connection_limits_await_empty(struct connection_limits *limits, uint64_t until_ns);

/* No connection may be left. Accepts NULL. */
void connection_limits_stop(struct connection_limits *limits);

/* Adds a connection, which has CONNECTION_FIRST_MS for its first header. The address is that of the
 * client (NULL: unknown). */
struct client_connection *connection_limits_add(struct connection_limits *limits, int fd,
                                                const struct sockaddr *address);

/* Removes a connection. Must be called before its socket is closed. Accepts NULL. */
void connection_limits_remove(struct connection_limits *limits, struct client_connection *client);

/* Returns the number of connections of all listeners. */
unsigned connection_limits_count(void);

/* Closes the connection in this many milliseconds, or never (CONNECTION_FOREVER). */
void client_connection_allow(struct client_connection *client, uint64_t ms);

/* Moves the time of closing by what the transfer of these bytes may take. */
void client_connection_extend(struct client_connection *client, uint64_t bytes);

/* Sets the deadline of a call (clock_ns; CONNECTION_FOREVER: none). At the deadline the reading
 * half of the connection is shut down, so that calls which wait for a hang-up stop, and can still
 * reply. A stream is closed CONNECTION_LATE_MS later, in case its client does not read. */
void client_connection_set_deadline(struct client_connection *client, uint64_t deadline_ns,
                                    bool is_stream);

/* Sets the id of the token that the call was made with ("": none), at most CALLER_TOKEN_MAX bytes.
 * Within a second after the token has become invalid, the connection is treated as at a deadline.
 */
void client_connection_set_token(struct client_connection *client, const char *id);
