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
    bool has_rest; /* the final HTTP chunk of the last stream was not read yet */
    int64_t since; /* when it became idle */
    struct connection *next;
};

struct holt {
    struct address address;
    char *token;     /* NULL: none */
    struct tls *tls; /* NULL: plain */
    unsigned idle_max;
    unsigned attempts;

    struct lock lock;
    struct connection *idle; /* most recently used first */
    unsigned idle_count;
};

/* Takes an idle connection that the daemon has not closed, or opens a new one. Returns 0 or -1. */
int handle_take(struct holt *holt, int64_t deadline, struct connection **ret,
                struct holt_error *error);

/* Returns a connection to the idle list, or closes it if it cannot be reused. Accepts NULL. */
void handle_give(struct connection *connection);

/* Takes a connection and sends a request over it; method is its path. A request is never sent
 * twice, as the effect of the first is unknown. */
int handle_send(struct holt *holt, const char *method, struct http_request *request,
                struct connection **ret, struct holt_error *error);

/* Handles a failed call. A connection whose deadline the daemon saw pass is closed, as the daemon
 * has shut it down. */
void connection_failed(struct connection *connection, const struct holt_error *error);

/* Reads the rest of the reply into the connection's body. Returns 0 or -1. */
int connection_read_all(struct connection *connection, struct holt_error *error);
