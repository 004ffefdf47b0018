/* Builds a template: creates a sandbox from another template, runs steps in it and commits it. Each
 * build has its own thread, and keeps its log in memory. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct build;
struct build_queue;
struct caller;
struct host;

enum {
    BUILD_LOGS_MAX = 10000,
    BUILD_LOG_BYTES_MAX = 4096,     /* of one line */
    BUILD_LOGS_BYTES_MAX = 4 << 20, /* of all lines */
    BUILD_STEPS_MAX = 256,
};

enum build_status { BUILD_WAITS, BUILD_RUNS, BUILD_IS_READY, BUILD_HAS_FAILED };

struct build_spec {
    const struct caller *caller; /* on whose behalf */
    const char *from;            /* name of the base template in the store */
    const char *name;            /* of the new template in the store; "": there is none */
    bool is_reserved;            /* the name has a record already */
    const json_t *steps;         /* [{"type", "args": [], "filesHash", "force"}], see step.c */
    const char *start_command, *ready_command; /* "": those of the base template */
    /* Limits of the build's sandbox and of sandboxes of the template; 0: those of the base. */
    unsigned cpus;
    uint64_t memory_bytes;
    bool is_forced;            /* do not use the cache of steps */
    const char *files;         /* absolute path of the directory of HASH.tar.gz for COPY */
    const char *notice;        /* first line of the log; NULL: none */
    struct build_queue *queue; /* outlives the build; NULL: it runs at once */
    /* For images (builder/image_step.c); NULL otherwise. What outlives the build is borrowed. */
    struct build_sources *sources;
    const json_t *settings;     /* of the new template */
    const char *origin_hash;    /* of the build that made the base; NULL: the base is no step */
    const char *user, *workdir; /* to begin with; NULL: those of the base */
    /* The build's thread calls it at the end, after the final state is set; may be NULL. */
    void (*ended)(void *context);
    void *context;
    uint64_t limit_ms; /* time limit, without the time in the queue */
    uint64_t ready_ms; /* time limit of the ready command */
};

struct build_state {
    enum build_status status;
    struct err err; /* of a failed build */
    char step[16];  /* the current or failed step: its number from 1, "base" before the first step,
                     * or "finalize" after the last */

    /* Of a successful build: the template of its last step, and the hash of all of them. */
    char last[65], hash[65];
};

/* Checks the spec, of which it makes a copy, and starts the build. */
int build_start(struct host *host, const struct build_spec *spec, struct build **ret,
                struct err *err);

/* Removes the sandboxes that builds of an earlier daemon process left. Called before the first
 * build. */
void build_sweep(struct host *host);

/* Returns whether the name is that of a cached step. */
bool build_is_step(const char *template);

/* Copies the present state. */
void build_get(struct build *build, struct build_state *ret);

/* Returns log entries from an offset, at most `limit`: [{"timestamp", "level", "message", "step"}].
 */
json_t *build_logs(struct build *build, size_t offset, size_t limit);

/* Cancels the build, which then fails and leaves no template. */
void build_cancel(struct build *build);

/* Waits for the end of the build and frees it. Accepts NULL. */
void build_free(struct build *build);
