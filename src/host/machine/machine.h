/* A running machine: a guest on a file tree, with limits and processes. A sandbox has one while it
 * is active; `holt run` has one and nothing else, a throw-away. Reference counted. */
#pragma once

#include "host/core/limits.h"

struct err;
struct host;
struct machine;

struct machine_spec {
    const char *template; /* NULL: the daemon's default */
    const char *runtime;  /* NULL: the daemon's default */
    struct sandbox_limits limits;
};

/* Makes a machine, from the warm pool when one is ready. The caller owns one reference. */
int machine_create(struct host *host, const struct machine_spec *spec, struct machine **ret,
                   struct err *err);

/* The sandbox with this id, with a reference for the caller, or ERR_NOT_FOUND. */
int machine_find(struct host *host, const char *id, struct machine **ret, struct err *err);

const char *machine_id(const struct machine *machine);

/* Kills every process in it and takes it out of the table; what is slow to undo is undone in the
 * background. Idempotent. Does not drop the caller's reference. */
void machine_destroy(struct machine *machine);

/* Accepts NULL. */
void machine_unref(struct machine *machine);
