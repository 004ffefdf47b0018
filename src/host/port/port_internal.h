/* Shared by the files about ports. The ports' lock comes after all other locks but a channel's; no
 * other lock is taken while it is held. */
#pragma once

#include <stdatomic.h>

#include "base/buf.h"
#include "base/thread.h"
#include "host/port/port.h"
#include "host/port/table.h"
#include "wire/frame.h"

struct ports {
    struct port_source wake;
    int epoll_fd;
    struct thread thread;
    char *listen,
        *advertise;    /* from the configuration; advertise "": the address of the listener */
    struct buf frames; /* the thread's: frames being built */
    char bytes[FRAME_DATA_MAX];   /* the thread's: data read from a client */
    struct port_connection *over; /* the thread's: ended connections, freed at the end of a turn */
    unsigned waiting;             /* the thread's: listeners that cannot accept now */

    struct lock lock; /* protects all fields below */
    struct cond changed;
    struct port_connection *ready; /* connections with pending work */
    struct port_forward *forwards; /* oldest first */
    bool has_changed;              /* a forward is new or must end */
    bool is_woken;
    bool is_stopping;
};

struct port_forward {
    struct port_source source; /* the listener */
    struct ports *ports;
    struct machine *machine; /* referenced */
    struct sandbox *sandbox;
    uint16_t port;
    char owner[PORT_OWNER_SIZE];
    char address[PORT_ADDRESS_SIZE], host[PORT_ADDRESS_SIZE];
    uint16_t host_port;
    int ended_fd;    /* an eventfd, readable after the end */
    bool is_waiting; /* the thread's: it cannot accept now */

    struct port_forward *next; /* this and the fields below: under the ports' lock */
    unsigned connections;
    bool is_unwanted; /* port_forward_close was called */
    bool is_over;     /* the thread has released it */
};

/* One connection: a client's socket on this side, a number on the guest's side. */
struct port_connection {
    struct port_source source; /* the client's socket; fd < 0: closed */
    struct ports *ports;
    struct machine *machine;      /* referenced */
    struct port_forward *forward; /* NULL: none */
    struct port_connection *next; /* in ports->over */
    uint32_t number;
    uint16_t port;

    /* Used by the thread only. */
    struct buf pending; /* frames that did not fit into the channel */
    bool wants_outcome; /* the client first receives the result of connecting: an int, 0 or errno */
    bool is_asked;      /* CONNECT was sent */
    bool is_read_out;   /* the client has sent its end of file */
    bool is_shut;       /* our end of file was sent to the client */
    bool is_hung;       /* the client's socket has hung up */
    bool is_broken;     /* it ends with a reset */
    bool is_over;
    uint64_t written; /* bytes written to the client */

    /* Under the ports' lock. */
    struct port_connection *next_ready;
    bool is_ready;
    bool is_connected;
    bool is_eof;   /* the guest has sent its end of file */
    bool is_ended; /* the guest has sent its last frame, with errnum */
    int errnum;
    char *data;        /* a ring of bytes for the client; allocated with the first byte */
    uint64_t received; /* from the guest */
    uint64_t acked;    /* of `received` */
    uint64_t sent;     /* to the guest */
    uint64_t taken;    /* of `sent`, acknowledged by the guest */
    bool is_eof_sent;
    bool is_end_sent;
};

/* Creates a connection for this client, and takes its socket. */
struct port_connection *port_connection_new(int fd, uint16_t port, struct port_forward *forward);
void port_connection_free(struct port_connection *connection);

/* Assigns a number and adds the connection to the machine's table. Returns 0, -EAGAIN when the
 * table is full, or -EPIPE when the guest is gone. */
int port_connection_add(struct machine *machine, struct port_connection *connection);

/* Removes the connection from the table and frees its number. Returns whether it was the machine's
 * last. */
bool port_connection_remove(struct port_connection *connection);

/* Does all pending work of a connection; called by the thread only. */
void port_serve(struct port_connection *connection);

/* Makes the thread continue with the machine when its channel can take frames again. */
void port_await_guest(struct machine *machine);

/* Polls a descriptor for these events (0: only for hang-up), or stops that. */
void port_watch(struct ports *ports, struct port_source *source, uint32_t events);
void port_unwatch(struct ports *ports, struct port_source *source);

/* Makes the thread check for work. The caller holds the lock. */
void port_wake(struct ports *ports);
