/* The codebase of a sandbox as a copy that is changed beside it and then takes its place: for
 * discard, rebase and merge. */
#pragma once

#include <stdint.h>

#include "host/codebase/codebase_internal.h"
#include "host/sandbox/info.h"

struct apply_plan;
struct err;
struct sandbox;

struct rework {
    struct sandbox *sandbox;
    struct codebase_work work;
    enum sandbox_state state; /* before it */
    int copy_fd;              /* what the sandbox sees of the codebase */
};

/* Begins the operation, freezes the processes of the sandbox and makes the copy. The caller calls
 * rework_end if it succeeds. ERR_INVALID for a sandbox without a codebase. */
int rework_begin(struct rework *rework, struct sandbox *sandbox, struct err *err);

/* Opens what another sandbox of the same codebase sees of it. */
int rework_open_other(struct rework *rework, struct sandbox *other, int *ret_fd, struct err *err);

/* Gives the sandbox the copy as its files above a version, or with `discards` the version alone.
 * Either that has happened, or nothing; its processes end. */
int rework_finish(struct rework *rework, uint32_t version, bool discards, struct err *err);

void rework_end(struct rework *rework);
