/* A sandbox as the daemon knows it: a volume, a guest, limits, processes. Reference counted. */
#pragma once

#include <stdint.h>

struct err;
struct host;
struct sandbox;

/* 0 means the daemon's default. */
struct sandbox_limits {
    uint64_t memory_bytes;
    uint32_t cpu_millis;
    uint32_t pids;
};

struct sandbox_spec {
    const char *template; /* NULL: the daemon's default */
    const char *runtime;  /* NULL: the daemon's default */
    struct sandbox_limits limits;
};

/* Makes a sandbox, from the warm pool when one is ready. The caller owns one reference. */
int sandbox_create(struct host *host, const struct sandbox_spec *spec, struct sandbox **ret,
                   struct err *err);

/* The sandbox with this id, with a reference for the caller, or ERR_NOT_FOUND. */
int sandbox_find(struct host *host, const char *id, struct sandbox **ret, struct err *err);

const char *sandbox_id(const struct sandbox *sandbox);

/* Kills every process in it and takes it out of the table; what is slow to undo is undone in the
 * background. Idempotent. Does not drop the caller's reference. */
void sandbox_destroy(struct sandbox *sandbox);

/* Accepts NULL. */
void sandbox_unref(struct sandbox *sandbox);
