/* holt.v1 as a front end of the HTTP server: Connect calls, one per row of api/route.c. */
#pragma once

#include "http/frontend.h"

struct host;
struct token_store;

/* What the services work on: the context of holt_frontend. */
struct api {
    struct host *host;
    struct token_store *tokens;
    const char *agents_dir; /* agent types of this host */
    bool has_port_names;    /* a front end serves ports of sandboxes by host name */
};

extern const struct frontend_ops holt_frontend;
