/* Which path is which method. */
#pragma once

#include "api/service.h"

struct route {
    const char *path;
    unary_fn *unary; /* one of the two */
    stream_fn *stream;
};

/* The method at this path, or NULL. */
const struct route *route_find(const char *path);
