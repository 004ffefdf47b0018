/* Ports of a machine, reached from outside through its holt-init: forwards, which listen and pass
 * every connection on, and probes. One thread copies the bytes of all of them. */
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
    struct sandbox *sandbox; /* NULL: none; not idle while somebody is connected. The caller keeps
                                it until the forward is closed */
    const char *owner;       /* what a list calls it: the sandbox's id */
};

/* Listens, and passes connections on until it is closed or its machine ends. A client that connects
 * while nothing listens inside is reset at once. */
int port_forward_open(struct machine *machine, const struct port_forward_spec *spec,
                      struct port_forward **ret, struct err *err);

/* Where clients find it: "HOST:PORT", and its parts. */
const char *port_forward_address(const struct port_forward *forward);
const char *port_forward_host(const struct port_forward *forward);
uint16_t port_forward_port(const struct port_forward *forward);

/* Waits for the end of its machine: 0; or -ECANCELED when watch_fd (-1: none) hangs up first. */
int port_forward_wait(const struct port_forward *forward, int watch_fd);

/* Ends it with all its connections. Accepts NULL. */
void port_forward_close(struct port_forward *forward);

struct port_info {
    char owner[PORT_OWNER_SIZE];
    char address[PORT_ADDRESS_SIZE];
    uint16_t port;
    unsigned connections;
};

/* All forwards of this owner (NULL: of all), oldest first; the caller frees *ret. */
void port_list(struct host *host, const char *owner, struct port_info **ret, size_t *ret_count);

/* How long to wait, and for whom. */
struct port_patience {
    uint64_t deadline_ms; /* of clock_ms() */
    int cancel_fd;        /* readable or hung up: it is to end now; -1: none */
};

/* A connection to the port as a stream socket for the caller, blocking. ERR_BUSY: nobody listens,
 * or it took too long; -ECANCELED when it was cancelled; anything else will not get better. */
int port_dial(struct machine *machine, uint16_t port, const struct port_patience *patience,
              int *ret_fd, struct err *err);

/* Asks once whether the port is ready: it can be connected to and, with a path, answers a GET of it
 * with a status of 200 to 399. Fails as port_dial does. */
int port_probe(struct machine *machine, uint16_t port, const char *http_path,
               const struct port_patience *patience, struct err *err);
