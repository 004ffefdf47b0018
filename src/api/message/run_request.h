/* The RunRequest message as the host's own specs. */
#pragma once

#include <jansson.h>

#include "api/message/process_request.h"
#include "host/machine/machine.h"

struct run_request {
    struct machine_spec machine;
    struct process_request process;
};

/* Checks every field. The specs point into the object and into ret, and live as long as both. */
int run_request_parse(const json_t *object, struct run_request *ret, struct err *err);

void run_request_done(struct run_request *request);

/* The fields template, runtime and limits of an object that may have others, which are the caller's
 * to check. */
int machine_request_parse(const json_t *object, struct machine_spec *ret, struct err *err);
