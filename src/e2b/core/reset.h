/* Connections that are broken when their sandbox is paused or ends: an orderly end would look like
 * a complete reply. A request that replies with a stream lists its connection here meanwhile. */
#pragma once

#include <stdbool.h>

#include "host/sandbox/info.h"

struct e2b_resets;
struct host;

/* Part of the request's state. */
struct e2b_reset {
    struct e2b_reset *next, **slot; /* protected by the lock of the list */
    bool is_listed;
    char sandbox[SANDBOX_ID_MAX]; /* Holt's id */
    int fd;
    bool is_stream; /* of messages: its client notices a missing end, and expects no reset */
};

/* Creates the list. The first connection starts a thread that follows the events of sandboxes. */
struct e2b_resets *e2b_resets_new(struct host *host);

/* No connection may be listed any more; the host must still be open. Accepts NULL. */
void e2b_resets_free(struct e2b_resets *resets);

/* Lists a connection: it is broken when the sandbox is paused, stopped, rolled back or destroyed.
 * Must be called before the request uses the sandbox, which fails if it is paused already. */
void e2b_reset_add(struct e2b_resets *resets, struct e2b_reset *reset, const char *sandbox, int fd);

/* Removes the connection from the list, if it is there. Must be called before it is closed. */
void e2b_reset_remove(struct e2b_resets *resets, struct e2b_reset *reset);

/* Closes the connection of a chunked reply without its last chunk. Older clients in Python take
 * this for the end of the sandbox, but not a reset. The descriptor stays open. */
void e2b_connection_cut(int fd);

/* Resets a connection at once (RST over TCP); data that was not received is lost. The descriptor
 * stays open. */
void e2b_connection_reset(int fd);
