/* What the files about ports share. Lock order: the ports' lock comes after all others but a
 * channel's; nothing else is taken while it is held. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/lock.h"
#include "host/port/port.h"
#include "host/port/table.h"
#include "wire/frame.h"

struct ports {
    struct port_source wake;
    int epoll_fd;
    pthread_t thread;
    bool has_thread;
    char *listen, *advertise;     /* as configured; advertise "": the address listened on */
    struct buf frames;            /* the thread's: being built */
    char bytes[FRAME_DATA_MAX];   /* the thread's: from a client */
    struct port_connection *over; /* the thread's: freed at the end of a turn */
    unsigned waiting;             /* the thread's: listeners that cannot accept now */

    struct lock lock; /* over all below */
    struct cond changed;
    struct port_connection *ready; /* there is something to do for them */
    struct port_forward *forwards; /* oldest first */
    bool has_changed;              /* some forward is to end */
    bool is_woken;
    bool is_stopping;
};

struct port_forward {
    struct port_source source; /* the listener */
    struct ports *ports;
    struct machine *machine; /* a reference */
    struct sandbox *sandbox;
    uint16_t port;
    char owner[PORT_OWNER_SIZE];
    char address[PORT_ADDRESS_SIZE], host[PORT_ADDRESS_SIZE];
    uint16_t host_port;
    int ended_fd;    /* readable when it has ended */
    bool is_waiting; /* the thread's */

    struct port_forward *next; /* this and all below under the ports' lock */
    unsigned connections;
    bool is_unwanted; /* somebody closes it */
    bool is_over;     /* and the thread is done with it */
};

/* One connection: a client's socket on this side, a number on the guest's. */
struct port_connection {
    struct port_source source; /* the client; fd < 0: closed */
    struct ports *ports;
    struct machine *machine;      /* a reference */
    struct port_forward *forward; /* NULL: none */
    struct port_connection *next; /* among those that are over */
    uint32_t number;
    uint16_t port;

    /* the thread's */
    struct buf pending; /* frames that the guest does not take now */
    bool wants_outcome; /* the client is told first how connecting went: an int, 0 or errno */
    bool is_asked;      /* CONNECT is sent */
    bool is_read_out;   /* the client has said its end of file */
    bool is_shut;       /* the client was told that nothing more comes */
    bool is_hung;       /* the client's socket has hung up */
    bool is_broken;     /* it is to end before its time */
    bool is_over;
    uint64_t written; /* offset behind what the client has */

    /* under the ports' lock */
    struct port_connection *next_ready;
    bool is_ready;
    bool is_connected;
    bool is_eof;   /* the guest has sent its end of file */
    bool is_ended; /* and its last frame, with: */
    int errnum;
    char *data;        /* a ring of what the client does not have yet; made with the first byte */
    uint64_t received; /* from the guest */
    uint64_t acked;    /* of that */
    uint64_t sent;     /* to the guest */
    uint64_t taken;    /* of that */
    bool is_eof_sent;
    bool is_end_sent;
};

/* A connection of this client, whose socket it takes; and its end. */
struct port_connection *port_connection_new(int fd, uint16_t port, struct port_forward *forward);
void port_connection_free(struct port_connection *connection);

/* Puts a new connection where frames find it: 0, -EAGAIN when there are too many, -EPIPE when the
 * guest is gone. */
int port_connection_add(struct machine *machine, struct port_connection *connection);

/* Takes it out again. The number is free from then on. Whether it was the machine's last. */
bool port_connection_remove(struct port_connection *connection);

/* Does for a connection what can be done now; only the thread may. */
void port_serve(struct port_connection *connection);

/* The thread is to go on with the machine when its guest takes frames again. */
void port_await_guest(struct machine *machine);

/* Registers a descriptor for these events (0: for its end) or not at all. */
void port_watch(struct ports *ports, struct port_source *source, uint32_t events);
void port_unwatch(struct ports *ports, struct port_source *source);

/* The thread is to look again. Locked. */
void port_wake(struct ports *ports);
