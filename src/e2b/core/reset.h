/* Connections that go with their sandbox. A client that reads a stream from a sandbox which is
 * paused or ends must see its connection reset: an orderly end would look as if the stream were
 * whole. Whoever answers with such a stream notes its connection here meanwhile. */
#pragma once

#include <stdbool.h>

#include "host/sandbox/info.h"

struct e2b_resets;
struct host;

/* Part of whoever answers. */
struct e2b_reset {
    struct e2b_reset *next, **slot; /* slot points at us; under the lock of all */
    bool is_noted;
    char sandbox[SANDBOX_ID_MAX]; /* Holt's id */
    int fd;
};

/* With the first connection a thread begins that hears of what happens to sandboxes. */
struct e2b_resets *e2b_resets_new(struct host *host);

/* No connection may be noted any more; the host must still be open. Accepts NULL. */
void e2b_resets_free(struct e2b_resets *resets);

/* From now on the connection is reset when this sandbox is paused, stops, is rolled back or
 * destroyed. To be called before the sandbox is asked for anything: one that is paused already
 * refuses then. */
void e2b_reset_add(struct e2b_resets *resets, struct e2b_reset *reset, const char *sandbox, int fd);

/* To be called before the connection is closed. Fine for one that is not noted. */
void e2b_reset_remove(struct e2b_resets *resets, struct e2b_reset *reset);

/* Ends a client's connection at once: over TCP it is told so (RST), and what it has not received
 * yet is lost. The descriptor stays open, with nobody at its other end. */
void e2b_connection_reset(int fd);
