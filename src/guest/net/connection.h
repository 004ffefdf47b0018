/* Connections from the daemon to TCP ports of the sandbox: copies bytes between a socket and
 * frames. */
#pragma once

#include <stdbool.h>

struct connection;
struct frame;
struct guest;

/* Handles a frame about a connection. Returns false for a frame that holtd never sends. */
bool connection_handle(struct guest *guest, const struct frame *frame);

/* Continues after an event on the socket: readable, writable or connected. */
void connection_ready(struct guest *guest, struct connection *connection);

/* Queues data, ends of file, ends and acknowledgements as far as the link has room. */
void connection_pump(struct guest *guest);

/* Closes all connections: the daemon, and with it their other ends, is gone. */
void connection_end_all(struct guest *guest);

/* Frees the connections that ended in this turn. */
void connection_free_old(struct guest *guest);
