/* struct build and its functions, for the files of the builder. */
#pragma once

#include <stdatomic.h>

#include "base/access/caller.h"
#include "base/thread.h"
#include "builder/build.h"
#include "builder/queue.h"
#include "host/process/process.h"
#include "store/template/template.h"

struct buf;
struct label;
struct sandbox;

enum { BUILD_HASH_BYTES = 65 };

struct build {
    struct host *host;
    struct caller caller;
    struct thread thread;
    atomic_bool is_cancelled;
    bool is_forced, is_reserved; /* used only by the thread, as all below */

    char from[TEMPLATE_NAME_MAX + 1], name[TEMPLATE_NAME_MAX + 1];
    char last[TEMPLATE_NAME_MAX + 1]; /* the newest cached step, else the base */
    char *files;
    json_t *steps;
    struct build_queue *queue; /* NULL: it runs at once */
    struct build_turn turn;
    struct build_sources *sources;
    json_t *settings; /* to publish; NULL: those of the steps */
    void (*ended)(void *context);
    void *context;
    uint64_t limit_ms, ready_ms, end_ms; /* end_ms by clock_ms() */
    struct err cache_err;                /* why a step could not be added to the cache */
    char hash[BUILD_HASH_BYTES];         /* of the base template and the steps so far */
    struct sandbox *sandbox;             /* NULL: not created yet */
    char origin[TEMPLATE_NAME_MAX + 1];  /* template of the sandbox: the base or a cached step */
    json_t *env;
    char *user, *workdir, *start_command, *ready_command;
    unsigned cpus;
    uint64_t memory_bytes;

    struct lock lock; /* protects all fields below */
    struct build_state state;
    struct process *process; /* the running one, for build_cancel */
    json_t *logs;
    size_t log_bytes;
};

/* log.c: append one line, unless the log is full. */
void build_log(struct build *build, const char *level, const char *text, size_t len);
void build_log_text(struct build *build, const char *text);

/* Appends the outcome of the build, also to a full log. */
void build_log_end(struct build *build, const char *level, const char *text);

/* Appends the complete lines of the output of a command; with is_last also the incomplete one. */
void build_log_output(struct build *build, struct buf *pending, enum output_stream stream,
                      bool is_last);

/* build.c: creates the sandbox, unless it exists. */
int build_need_sandbox(struct build *build, struct err *err);

/* Commits the sandbox as an internal template of the build's owner. */
int build_commit(struct build *build, const char *name, struct template_info *ret, struct err *err);

/* command.c: returns 0, or ERR_CANCELED for a cancelled build. */
int build_check_cancel(struct build *build, struct err *err);

/* Runs a bash command in the sandbox and logs its output. A nonzero exit code is an error, unless
 * ret_code is set. */
struct build_command {
    const char *text;
    const char *what;  /* its name in errors; NULL: the text */
    char *const *argv; /* what to execute instead of bash; NULL: bash */
    const json_t *env; /* instead of that of the build; NULL: that */
    char *const *args; /* "$1" and so on; NULL: none */
    const char *user, *cwd;
    int input_fd;      /* file for stdin; -1: none */
    bool is_detached;  /* do not wait for its end */
    uint64_t until_ms; /* deadline by clock_ms(); 0: that of the build */
    int *ret_code;
};
int build_run(struct build *build, const struct build_command *command, struct err *err);

/* Marks the sandboxes of builds, for build_sweep. */
extern const struct label build_label;

/* step.c: returns an argument of a step; "" if it has none. */
const char *build_step_arg(const json_t *step, size_t index);

/* image_step.c */
int step_run_exec(struct build *build, const json_t *step, struct err *err);
int step_run_place(struct build *build, const json_t *step, struct err *err);
int step_run_write(struct build *build, const json_t *step, struct err *err);
int step_run_enter(struct build *build, const json_t *step, struct err *err);

/* step.c: checks the type and the arguments of a step. */
int build_step_check(const json_t *step, struct err *err);

/* Returns whether the step changes files. */
bool build_step_writes(const json_t *step);

/* Runs the commands of a step. */
int build_step_run(struct build *build, const json_t *step, struct err *err);

/* Applies the effect of a step, also of a cached one, on the following steps. */
void build_step_apply(struct build *build, const json_t *step);

/* Describes the step in one line. */
void build_step_describe(const json_t *step, char *into, size_t size);

/* cache.c: starts the hash with the base template. */
int build_hash_origin(struct build *build, struct err *err);

/* Adds the step to the hash. */
void build_hash_step(char hash[BUILD_HASH_BYTES], const json_t *step);

/* Returns the number of cached steps at the start, and sets origin to the last one. */
size_t build_cached_steps(struct build *build);

/* Adds the present sandbox to the cache, and removes the oldest steps from it. */
void build_cache_step(struct build *build);
