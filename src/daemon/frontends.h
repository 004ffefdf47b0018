/* The protocols that this daemon speaks. E2B and MCP can be left out of a build (make E2B=0 MCP=0).
 */
#pragma once

struct config;
struct err;
struct frontends;
struct host;
struct http_server;

int frontends_open(const struct config *config, struct host *host, struct frontends **ret,
                   struct err *err);

/* Starts the HTTP server with all front ends. */
int frontends_serve(struct frontends *frontends, const struct config *config,
                    struct http_server **ret, struct err *err);

/* Closes all front ends. The HTTP server must be stopped. Accepts NULL. */
void frontends_close(struct frontends *frontends);
