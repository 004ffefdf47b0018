/* A running machine: a guest on a file tree, with limits and processes. A sandbox has one while it
 * is active; `holt run` uses one without a sandbox, called a throw-away. Machines are reference
 * counted. */
#pragma once

#include "base/cleanup.h"
#include "host/core/limits.h"

struct caller;
struct err;
struct host;
struct machine;
struct net_layer;

struct machine_spec {
    const struct caller *caller; /* on whose behalf: gives the owner */
    const char *template;        /* a word of the caller's; NULL: the daemon's default */
    const char *runtime;         /* NULL: the daemon's default */
    struct sandbox_limits limits;
    uint64_t quota_bytes;            /* 0: the daemon's default */
    const struct net_layer *network; /* NULL: the daemon's default */
};

/* Creates a throw-away machine, from the warm pool when one is ready. The caller owns one
 * reference. */
int machine_create(struct host *host, const struct machine_spec *spec, struct machine **ret,
                   struct err *err);

/* Checks that the limits are in range. */
int machine_check_limits(const struct sandbox_limits *limits, struct err *err);

/* Finds the throw-away machine with this id and takes a reference; ERR_NOT_FOUND if there is none
 * that the caller sees. It has the labels of the scope of its creator. */
int machine_find(struct host *host, const struct caller *caller, const char *id,
                 struct machine **ret, struct err *err);

const char *machine_id(const struct machine *machine);

/* Kills every process in the machine and takes it out of the table; the reaper releases its
 * resources in the background. Idempotent. Does not drop the caller's reference. */
void machine_destroy(struct machine *machine);

/* Drops a reference. Accepts NULL. */
void machine_unref(struct machine *machine);
DEFINE_CLEANUP(machine_unref, struct machine *);
