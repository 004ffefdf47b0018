/* The daemon's door: HTTP on a unix socket and, if configured, on TCP; Connect services behind it.
 */
#pragma once

struct api;
struct config;
struct err;
struct host;

/* Listens on <run>/holt.sock and, unless listen is "none", on TCP, where every request needs the
 * token in <state>/token (made when missing). Requests are answered when this returns. Whoever
 * calls it is the only daemon of this run directory: a socket file found there is stale. */
int api_start(const struct config *config, struct host *host, struct api **ret, struct err *err);

/* Takes no more connections, lets calls that are under way end, tells those who wait or listen that
 * the daemon is shutting down (host_drain comes before), and returns when all clients have gone, or
 * after this time. Accepts NULL. */
void api_drain(struct api *api, unsigned ms);

/* Hangs up on every client, waits for the requests in progress and removes the socket file.
 * Accepts NULL. */
void api_stop(struct api *api);
