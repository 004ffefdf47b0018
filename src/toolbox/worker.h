/* One tool, done by a tool worker (src/tools) inside a sandbox. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "wire/file.h"
#include "wire/tool.h"

struct err;
struct sandbox;

struct tool_worker_job {
    enum worker_tool tool;
    const struct tool_value *values; /* one for each parameter, as the table has them */
    size_t count;
    int watch_fd;         /* hangs up when the client goes away; -1: none */
    uint64_t deadline_ms; /* of clock_ms(): by when it must be over; 0: no such moment */
    bool is_read_only;    /* the client may change nothing, and has only a share of the workers */
};

struct tool_worker_change {
    char kind; /* A, M: as diff */
    char *path;
};

/* All of it was checked: a worker is as hostile as its sandbox. */
struct tool_worker_answer {
    struct buf content; /* valid UTF-8 without NUL, or an image */
    struct tool_outcome outcome;
    struct tool_worker_change changes[TOOL_EVENTS_MAX];
    size_t change_count;
};

/* Needs what exec needs, and keeps the sandbox from being idle; the sandbox must stay referenced.
 * 0 when the worker has answered, were it that it could not do it (TOOL_IS_ERROR). -ECANCELED when
 * the client has gone, -ETIMEDOUT (ERR_DEADLINE) when the time is over: in both cases the worker is
 * killed, and a file is as it was or as it was to be. On success the caller ends *ret with
 * tool_worker_answer_done. */
int tool_worker_run(struct sandbox *sandbox, const struct tool_worker_job *job,
                    struct tool_worker_answer *ret, struct err *err);

/* What has come of an answer and was not taken yet. */
struct tool_worker_ear {
    struct file_parser parser;
    struct buf in;
    size_t taken; /* of it */
};

/* Takes what has come: 1 when the answer is whole, 0 when more must come, -EPROTO when a true
 * worker would not say that. */
int tool_worker_hear(struct tool_worker_ear *ear, struct tool_worker_answer *answer);

/* Accepts one of zeros. */
void tool_worker_answer_done(struct tool_worker_answer *answer);
