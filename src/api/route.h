/* Which path is which method. */
#pragma once

#include "api/service.h"

struct route {
    const char *path;
    unary_fn *unary; /* one of the two */
    stream_fn *stream;
    bool can_be_raw; /* a stream whose connection the client may ask for */
};

/* The method at this path, or NULL. */
const struct route *route_find(const char *path);
