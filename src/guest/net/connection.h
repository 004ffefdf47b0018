/* Connections of the daemon to ports of the sandbox: bytes between a socket and frames. */
#pragma once

#include <stdbool.h>

struct connection;
struct frame;
struct guest;

/* Handles a frame about a connection. False: it cannot come from our daemon. */
bool connection_handle(struct guest *guest, const struct frame *frame);

/* Its socket has something, or room, or is connected. */
void connection_ready(struct guest *guest, struct connection *connection);

/* Queues bytes, ends and acknowledgements as far as the link takes them. */
void connection_pump(struct guest *guest);

/* The daemon has gone, and with it the other ends. */
void connection_end_all(struct guest *guest);

/* Frees those that ended in this turn. */
void connection_free_old(struct guest *guest);
