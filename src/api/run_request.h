/* The RunRequest message as the host's own specs. */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "host/machine.h"
#include "host/process.h"

struct run_request {
    struct machine_spec machine;
    struct process_spec process;

    struct buf text; /* the bytes that args and env point into */
    char **words;    /* both lists, each with its NULL */
};

/* Checks every field. The specs point into the object and into ret, and live as long as both. */
int run_request_parse(const json_t *object, struct run_request *ret, struct err *err);

void run_request_done(struct run_request *request);
