/* The connections that a machine has to its ports. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct port_connection;

/* A descriptor in the event loop of the ports' thread, and what it is. */
enum port_kind { PORT_WAKE, PORT_LISTENER, PORT_CLIENT, PORT_GUEST };

struct port_source {
    enum port_kind kind;
    int fd;
    bool is_watched;
    uint32_t events;
};

/* Part of a struct machine; all but `guest` is under the ports' lock. */
struct port_table {
    struct port_source guest;       /* the machine's channel, while that takes no more frames */
    struct port_connection **slots; /* FRAME_CONNECTIONS_MAX, by the remainder of the number */
    unsigned used;
    uint32_t sequence;
    bool is_cut; /* the guest is gone */
};
