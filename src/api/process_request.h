/* The ProcessSpec of a request as the host's own spec. */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "host/process.h"

struct process_request {
    struct process_spec spec;

    struct buf text; /* the bytes that args and env point into */
    char **words;    /* both lists, each with its NULL */
};

/* Checks every part of the request's field "process". The spec points into the object and into ret,
 * and lives as long as both. */
int process_request_parse(const json_t *object, struct process_request *ret, struct err *err);

void process_request_done(struct process_request *request);
