/* Resource usage of sandboxes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/sandbox/info.h"

struct err;
struct host;

/* All fields but the storage are 0 if the sandbox does not run. */
struct sandbox_stats {
    char id[SANDBOX_ID_MAX];
    char name[SANDBOX_NAME_MAX + 1];
    char owner[OWNER_NAME_MAX + 1];
    enum sandbox_state state;
    uint64_t taken_ms; /* of the monotonic clock */
    uint64_t age_ms;   /* since it was created */
    uint64_t cpu_us;   /* since its machine started */
    uint64_t memory_bytes;
    uint64_t cache_bytes;         /* reclaimable file cache, not part of memory_bytes */
    uint32_t pids;                /* without Holt's own */
    uint32_t processes;           /* running, started by clients */
    struct sandbox_limits limits; /* in force, with the daemon's defaults; 0: none */
    uint64_t space_used;          /* in the storage; 0 if not queried */
    uint64_t quota_bytes;         /* 0: none */
};

/* Computes the limits in force for requested ones: with the daemon's defaults and the capacity of
 * the machine. */
void sandbox_limits_in_force(struct host *host, const struct sandbox_limits *asked,
                             struct sandbox_limits *ret);

/* The sandboxes with these ids or names, in this order, or all that the caller sees (count 0),
 * oldest first. */
struct stats_query {
    const struct caller *caller;
    const char *const *ids;
    size_t count;
    bool wants_space; /* query the storage, which may be slow */
};

/* Returns the stats of the sandboxes; the caller frees *ret. ERR_NOT_FOUND for an unknown sandbox.
 */
int sandbox_list_stats(struct host *host, const struct stats_query *query,
                       struct sandbox_stats **ret, size_t *ret_count, struct err *err);
