/* A connection of a sandbox whose TLS ends here: requests are read, decided, written anew and sent
 * to the server over TLS; replies come back the same way. One server's connection belongs to one
 * client's connection. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct connection;
struct guest;
struct session;

/* Returns whether TLS to this host must end here for the sandbox. */
bool session_is_needed(const struct guest *guest, const char *name, uint16_t port);

/* Takes over a connection whose ClientHello is in connection->in. Returns 0, or -errno if it
 * cannot. */
int session_start(struct connection *connection);

/* Gives up the shares of its sandbox, which may end before session_free. */
void session_leave(struct session *session);
void session_free(struct session *session);

/* Goes on after an event of a socket, or when the server is connected. */
void session_ready(struct connection *connection, bool is_client, uint32_t events);
void session_pump(struct connection *connection);
