/* Ports of a machine, reached from outside through its holt-init: forwards, which listen and relay
 * every connection, and probes. One thread copies the bytes of all of them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct err;
struct host;
struct machine;
struct port_forward;
struct sandbox;

enum { PORT_ADDRESS_SIZE = 300, PORT_OWNER_SIZE = 160 };

struct port_forward_spec {
    uint16_t port;           /* of the machine's loopback */
    const char *listen;      /* "ADDR:PORT" or ":PORT"; NULL or "": as configured, any free port */
    struct sandbox *sandbox; /* NULL: none; not idle while a client is connected. The caller
                                holds a reference until the forward is closed */
    const char *owner;       /* in lists: the sandbox's id */
};

/* Listens, and relays connections until the forward is closed or its machine ends. A client is
 * reset at once when nothing listens inside. */
int port_forward_open(struct machine *machine, const struct port_forward_spec *spec,
                      struct port_forward **ret, struct err *err);

/* The address for clients, "HOST:PORT", and its parts. */
const char *port_forward_address(const struct port_forward *forward);
const char *port_forward_host(const struct port_forward *forward);
uint16_t port_forward_port(const struct port_forward *forward);

/* Waits until the machine has ended, and returns 0; -ECANCELED when watch_fd (-1: none) hangs up
 * first. */
int port_forward_wait(const struct port_forward *forward, int watch_fd);

/* Closes the forward with all its connections. Accepts NULL. */
void port_forward_close(struct port_forward *forward);

struct port_info {
    char owner[PORT_OWNER_SIZE];
    char address[PORT_ADDRESS_SIZE];
    uint16_t port;
    unsigned connections;
};

/* Lists the forwards of this owner (NULL: of all), oldest first; the caller frees *ret. */
void port_list(struct host *host, const char *owner, struct port_info **ret, size_t *ret_count);

enum port_listener {
    PORT_LISTENER_NONE,  /* nothing listens on the port */
    PORT_LISTENER_OWN,   /* the process or one of its descendants does */
    PORT_LISTENER_OTHER, /* only other processes do */
};

/* Finds out whether a process of the machine listens on a TCP port. */
int port_find_listener(struct machine *machine, const char *process_id, uint16_t port,
                       enum port_listener *ret);

/* A deadline, and a descriptor that cancels the wait. */
struct port_patience {
    uint64_t deadline_ms; /* of clock_ms() */
    int cancel_fd;        /* cancels when it is readable or has hung up; -1: none */
};

/* Connects to the port and returns a blocking stream socket. ERR_BUSY: nothing listens, or the
 * deadline has passed; -ECANCELED: cancelled; any other error is permanent. */
int port_dial(struct machine *machine, uint16_t port, const struct port_patience *patience,
              int *ret_fd, struct err *err);

/* Checks once whether the port is ready: it accepts a connection and, if a path is given, replies
 * to a GET of it with a status of 200 to 399. Fails as port_dial does. */
int port_probe(struct machine *machine, uint16_t port, const char *http_path,
               const struct port_patience *patience, struct err *err);
