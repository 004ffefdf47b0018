/* The connections that a machine has to its ports. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct frame;
struct machine;
struct port_connection;

/* A descriptor in the event loop of the port thread, and its kind. */
enum port_kind { PORT_WAKE, PORT_LISTENER, PORT_CLIENT, PORT_GUEST };

struct port_source {
    enum port_kind kind;
    int fd;
    bool is_watched;
    uint32_t events;
};

/* Part of a struct machine; the lock of the ports protects all but `guest`. */
struct port_table {
    struct port_source guest;       /* the machine's channel, while its buffer is full */
    struct port_connection **slots; /* FRAME_CONNECTIONS_MAX, indexed by number modulo that */
    unsigned used;
    uint32_t sequence;
    bool is_cut; /* the guest is gone */
};

/* Handles a frame about a connection, on the reactor's thread. Returns false when the frame is not
 * acceptable. */
bool port_frame(struct machine *machine, const struct frame *frame);

/* Ends the connections and forwards of a machine whose guest is gone. */
void port_cut(struct machine *machine);

/* Frees what the table holds. */
void port_table_done(struct port_table *table);
