/* Which path is which method. */
#pragma once

#include <stddef.h>

#include "api/service.h"

struct route {
    const char *path;
    unary_fn *unary; /* one of the three */
    stream_fn *stream;
    upload_fn *upload;
    bool can_be_raw;   /* the client may ask for the connection itself */
    bool is_read_only; /* changes nothing: a token that may only read may call it */
    bool is_large;     /* its request may bring a whole file, with NULs inside */
    bool is_admin;     /* concerns the whole host: only an admin may call it */
};

enum { ROUTES_MAX = 128 };

/* The method at this path, or NULL. */
const struct route *route_find(const char *path);

/* All of them in turn, from 0 up to ROUTES_MAX; NULL behind the last. */
const struct route *route_at(size_t index);
size_t route_index(const struct route *route);
