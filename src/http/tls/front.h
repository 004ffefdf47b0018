/* The TLS front: speaks TLS with clients and passes plain bytes to the HTTP server, each connection
 * over a pair of sockets. libmicrohttpd's own TLS passes upgraded connections a few bytes at a
 * time.
 *
 * A few threads serve all connections without ever blocking on one. The memory of a connection is
 * bounded: two buffers of TLS_FRONT_BUFFER bytes and what OpenSSL keeps of a record. A connection
 * that has not completed its handshake in time is closed, and so is the oldest such one when there
 * are too many, in all or from one address. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct err;
struct tls;
struct tls_front;

enum { TLS_FRONT_BUFFER = 16 * 1024 };

struct tls_front_options {
    int listen_fd; /* borrowed; must not block */
    const struct tls *tls;
    size_t handshakes_max; /* at the same time */
    size_t handshakes_per_address;

    /* Takes over the plain end of a connection: the server's socket, and the address of the client.
     * Closes it and returns false if there are too many. */
    bool (*accept)(void *context, int fd, const struct sockaddr *address, socklen_t len);
    void *context;
};

/* Starts the threads. */
int tls_front_start(const struct tls_front_options *options, struct tls_front **ret,
                    struct err *err);

/* Accepts no more connections. */
void tls_front_quiesce(struct tls_front *front);

/* Sends what the server has sent, for a second at most, closes all connections and frees the front.
 * The server must have closed its sockets. Accepts NULL. */
void tls_front_stop(struct tls_front *front);

/* Resets the client's connection, if fd is the server's socket of a front. Returns whether it is.
 */
bool tls_front_reset(int fd);
