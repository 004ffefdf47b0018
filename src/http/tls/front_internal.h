/* Connections of the TLS front. Each belongs to one loop, whose thread alone uses it. */
#pragma once

#include <openssl/ssl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/lock.h"
#include "base/thread.h"
#include "http/tls/front.h"

enum { LOOPS = 2 }; /* threads: a handshake of one client does not hold up all others */

enum stage { STAGE_HANDSHAKE, STAGE_OPEN, STAGE_CLOSING };

/* One side of a connection, for epoll: `data.ptr` points here. */
struct side {
    struct front_connection *connection;
    int fd;
    uint32_t mask; /* as epoll has it */
    bool is_watched;
};

struct pipe_half {
    char *data; /* TLS_FRONT_BUFFER bytes */
    size_t at, len;
    bool is_ended; /* its source has ended */
    bool is_shut;  /* and its sink was told so, or reads no more */
};

struct front_connection {
    struct front_connection *next, **slot; /* in its loop */
    struct front_loop *loop;
    struct side outer, inner; /* the client, and our end of the pair */
    int server_fd;            /* the other end, which belongs to the server once open */
    SSL *ssl;
    enum stage stage;
    uint64_t deadline_ms; /* of the handshake, of closing, or since the server has closed */
    size_t left;          /* bytes that the client had not taken when that deadline was set */
    struct sockaddr_storage address;
    socklen_t address_len;
    bool wants_write;          /* OpenSSL waits until it can write */
    bool is_dead;              /* to be freed */
    bool is_late;              /* and reset: the kernel would keep what the client does not read */
    struct pipe_half up, down; /* to the server, and to the client */

    /* Under the front's lock: */
    struct front_connection *next_open, **slot_open;
    bool is_reset;
};

struct front_loop {
    struct tls_front *front;
    struct thread thread;
    int epoll_fd;
    struct front_connection *first; /* newest first */
    uint64_t check_ms;              /* when the open connections are looked at again */
    bool is_resting;                /* the listener is not watched until then */
};

struct tls_front {
    struct tls_front_options options;
    SSL_CTX *context;
    int wake_fd; /* readable when the front stops */
    atomic_bool is_quiet;
    struct front_loop loops[LOOPS];
    struct lock lock;
    struct front_connection *open; /* newest first */
};

/* Closes both sockets and frees the connection. */
void front_connection_free(struct front_connection *connection);

/* Goes on with the handshake; after it, the server gets its end of the pair. */
void front_connection_shake(struct front_connection *connection);

/* Looks whether the server has closed a connection whose client does not read: the inner socket is
 * not watched meanwhile, and the server no longer counts the connection, which must not stay for as
 * long as the client likes. A client that reads CONNECTION_BYTES_PER_S gets everything. */
void front_connection_check(struct front_connection *connection, uint64_t now_ms);

/* Handles events of epoll. */
void front_side_handle(struct side *side, uint32_t events);
