/* What a subscriber asks for. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "host/observe/event_ring.h"

struct err;

/* Points into the request. */
struct watch_request {
    struct event_reader_spec spec;
    bool follows;
};
int watch_request_parse(const json_t *request, struct watch_request *ret, struct err *err);
