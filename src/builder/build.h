/* A template in the making: a sandbox of another template, steps that change it, and a commit. Runs
 * in a thread of its own; what it says meanwhile is kept with it. Reference counted, for the thread
 * and for the caller. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct build;
struct build_queue;
struct host;

enum {
    BUILD_LOGS_MAX = 10000,
    BUILD_LOG_BYTES_MAX = 4096,     /* of one line */
    BUILD_LOGS_BYTES_MAX = 4 << 20, /* of all */
    BUILD_STEPS_MAX = 256,
};

enum build_status { BUILD_WAITS, BUILD_RUNS, BUILD_IS_READY, BUILD_HAS_FAILED };

struct build_spec {
    const char *from;    /* a template's name */
    const char *name;    /* of the new one */
    const json_t *steps; /* [{"type", "args": [], "filesHash", "force"}], see build_step.c */
    const char *start_command, *ready_command; /* "": as of the template it is made from */
    /* Of the sandbox that it is made in and of those made from it; 0: as above. */
    unsigned cpus;
    uint64_t memory_bytes;
    bool is_forced;            /* steps are run although they have been run before */
    const char *files;         /* absolute: where HASH.tar.gz of COPY is */
    const char *notice;        /* the first line of the log; NULL: none */
    struct build_queue *queue; /* lives longer than the build */
    /* Called at the end by the build's own thread, when build_get knows it; may be NULL. */
    void (*ended)(void *context);
    void *context;
    uint64_t limit_ms; /* for all of it, from its turn on */
    uint64_t ready_ms; /* for the start command to be ready */
};

struct build_state {
    enum build_status status;
    struct err err; /* of a failed one */
    char step[16];  /* where it is, or failed: its number from 1, or "base" and "finalize" for what
                     * comes before and behind all steps */
};

/* Checks what can be checked, then starts. Takes what it needs of the spec. */
int build_start(struct host *host, const struct build_spec *spec, struct build **ret,
                struct err *err);

/* Removes the sandboxes of builds that ended with an earlier daemon. Before any build is started.
 */
int build_sweep(struct host *host, struct err *err);

/* Whether a template is what a step of a build has left, by its name. */
bool build_is_step(const char *template);

void build_get(struct build *build, struct build_state *ret);

/* Log entries from the offset-th on, at most so many:
 * [{"timestamp", "level", "message", "step"}]. */
json_t *build_logs(struct build *build, size_t offset, size_t limit);

/* It fails soon, and leaves no template. */
void build_cancel(struct build *build);

/* Waits for the end. Accepts NULL. */
void build_free(struct build *build);
