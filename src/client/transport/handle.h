/* The handle: address of the daemon, connection settings and a list of idle connections. A call or
 * a stream owns a connection and gives it back. Nothing else is shared between threads, and the
 * lock protects the list alone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "client/transport/address.h"
#include "client/transport/http.h"

struct holt_error;
struct tls;

struct connection {
    struct holt *holt;
    struct http http;
    bool has_rest; /* HTTP's own end of the last stream was not read yet */
    int64_t since; /* when it was given back */
    struct connection *next;
};

struct holt {
    struct address address;
    char *token;     /* NULL: none */
    struct tls *tls; /* NULL: plain */
    unsigned idle_max;
    unsigned attempts;

    struct lock lock;
    struct connection *idle; /* the latest first */
    unsigned idle_count;
};

/* A connection on which a request may be sent: one that waits, if the daemon has not closed it, or
 * a new one. 0 or -1. */
int handle_take(struct holt *holt, int64_t deadline, struct connection **ret,
                struct holt_error *error);

/* Takes it back, and closes it unless it can be used again. NULL is none. */
void handle_give(struct connection *connection);

/* Takes a connection and sends a request over it; method is its path. A request is never sent
 * twice, as the effect of the first is unknown. */
int handle_send(struct holt *holt, const char *method, struct http_request *request,
                struct connection **ret, struct holt_error *error);

/* Handles a failed call. A connection whose deadline the daemon saw pass is closed, as the daemon
 * has shut it down. */
void connection_failed(struct connection *connection, const struct holt_error *error);

/* Reads the rest of the reply into the connection's body: 0 or -1. */
int connection_read_all(struct connection *connection, struct holt_error *error);
