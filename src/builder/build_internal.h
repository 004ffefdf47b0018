/* What the files of a build share. */
#pragma once

#include <stdatomic.h>

#include "base/thread.h"
#include "builder/build.h"
#include "builder/queue.h"
#include "host/process/process.h"
#include "store/template/template.h"

struct buf;
struct sandbox;

enum { BUILD_HASH_BYTES = 65 };

struct build {
    struct host *host;
    struct thread thread;
    atomic_bool is_cancelled;

    /* The thread's own. */
    char from[TEMPLATE_NAME_MAX + 1], name[TEMPLATE_NAME_MAX + 1];
    char *files;
    json_t *steps;
    bool is_forced;
    struct build_queue *queue;
    struct build_turn turn;
    void (*ended)(void *context);
    void *context;
    uint64_t limit_ms, ready_ms, end_ms; /* end_ms by clock_ms() */
    char hash[BUILD_HASH_BYTES]; /* of what the sandbox is: its origin and the steps so far */
    struct sandbox *sandbox;     /* NULL: not needed yet */
    char origin[TEMPLATE_NAME_MAX + 1]; /* what it is to be made from */
    json_t *env;
    char *user, *workdir, *start_command, *ready_command;
    unsigned cpus;
    uint64_t memory_bytes;

    struct lock lock; /* over what follows */
    struct build_state state;
    struct process *process; /* that a cancel has to end */
    json_t *logs;
    size_t log_bytes;
};

/* build_log.c: one line for whoever follows. */
void build_log(struct build *build, const char *level, const char *text, size_t len);
void build_log_text(struct build *build, const char *text);

/* What has become of it, which is told in any case. */
void build_log_end(struct build *build, const char *level, const char *text);

/* Takes whole lines from what a command has written; at its end, what is left too. */
void build_log_output(struct build *build, struct buf *pending, enum output_stream stream,
                      bool is_last);

/* Makes sure that there is a sandbox with everything so far. */
int build_need_sandbox(struct build *build, struct err *err);

/* build_command.c: 0, or ERR_CANCELED. */
int build_check_cancel(struct build *build, struct err *err);

/* Runs a command of bash in it and logs what it writes. input (NULL: none) is a file for its stdin.
 * An exit code other than 0 is an error, unless ret_code takes it. */
struct build_command {
    const char *text;
    const char *what;  /* it is called if it fails; NULL: by its text */
    char *const *args; /* "$1" and so on; NULL: none */
    const char *user, *cwd;
    int input_fd;      /* -1: none */
    bool is_detached;  /* goes on by itself */
    uint64_t until_ms; /* by clock_ms(), when before the end of the build; 0: that */
    int *ret_code;
};
int build_run(struct build *build, const struct build_command *command, struct err *err);

/* build_step.c: whether the step is known and has what it needs. */
int build_step_check(const json_t *step, struct err *err);

/* Whether it changes files, and not only what comes after it. */
bool build_step_writes(const json_t *step);

int build_step_run(struct build *build, const json_t *step, struct err *err);

/* What it means for the steps behind it, also of one that was run before. */
void build_step_apply(struct build *build, const json_t *step);

/* In one line. */
void build_step_describe(const json_t *step, char *into, size_t size);

/* build_cache.c: begins the hash with the template that the build is made from. */
int build_hash_origin(struct build *build, struct err *err);

/* hash becomes that of itself and the step behind it. */
void build_hash_step(char hash[BUILD_HASH_BYTES], const json_t *step);

/* How many steps need not be run; the sandbox is then made from what they left. */
size_t build_steps_kept(struct build *build);

/* Keeps what the sandbox is after a step, and of all steps only the newest. */
void build_keep_step(struct build *build);
