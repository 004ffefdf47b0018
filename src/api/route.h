/* Which path is which method. */
#pragma once

#include "api/service.h"

struct route {
    const char *path;
    unary_fn *unary; /* one of the three */
    stream_fn *stream;
    upload_fn *upload;
    bool can_be_raw; /* a stream whose connection the client may ask for */
    bool only_looks; /* changes nothing: a token that may only read may call it */
};

/* The method at this path, or NULL. */
const struct route *route_find(const char *path);
