/* What the files of the tools' engine share.
 *
 * A job is one piece of work: whoever asked for it, and whoever joined by its id, has a call on it.
 * Exactly one thread at a time drives a job; its fields are that thread's until it is over. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "host/process.h"
#include "host/sandbox_info.h"
#include "host/tool.h"
#include "host/tool_table.h"

struct tool_job;
struct tool_kind;

enum {
    TOOL_EXIT_TIMED_OUT = 124,
    TOOL_TEXT_MAX = 64 * 1024 * 1024, /* of a result before it is cut */
    TOOL_CHANGES_MAX = 1000,
    TOOL_HANDLE_SIZE = 24,
};

struct tool_progress {
    const char *text;
    size_t len;
    bool is_stderr;
};

/* How a kind of tool is done. Everything is called by the thread that drives the job. */
struct tool_kind {
    /* Goes on until there is something to tell (1), the job is over (0), or it cannot be done at
     * all (negative, with err set; -ECANCELED when the peer of watch_fd has hung up, and then it
     * may be called again). */
    int (*next)(struct tool_job *job, int watch_fd, struct tool_progress *ret, struct err *err);

    /* Ends what goes on, unless it is over, and frees the state. NULL: there is none. */
    void (*stop)(struct tool_job *job);

    /* Makes next return soon; from any thread, with the job's lock held. NULL: it does anyway. */
    void (*cancel)(struct tool_job *job);
};

extern const struct tool_kind tool_by_worker, tool_by_process, tool_by_shell, tool_by_launch,
    tool_by_turn;

struct tool_job {
    atomic_int refs;
    struct sandbox *sandbox; /* referenced */
    const struct tool *tool;
    const struct tool_kind *kind;
    json_t *params;            /* referenced; values point into it */
    struct tool_values values; /* checked */
    uint64_t began_ms;
    uint64_t deadline_ms; /* of clock_ms(); 0: none */
    uint64_t budget;      /* bytes of text */
    uint64_t memory_bytes;
    uint32_t cpus_milli;
    bool wants_changed;
    bool wants_snapshot;
    bool only_looks; /* the client may change nothing */
    void *state;     /* of its kind */

    /* What comes of it, while it goes on: */
    struct buf text;  /* all that there is to say, or base64 of an image */
    const char *mime; /* of an image, points to mime_text */
    char mime_text[TOOL_MIME_MAX + 1];
    bool is_cut_here; /* the tool itself had more to say, and has said so */

    /* and in the end: */
    struct tool_result result;
    struct tool_block block;
    char handle[TOOL_HANDLE_SIZE];

    pthread_mutex_t lock; /* over all below */
    bool is_canceled;
    bool is_over;
    int failure; /* of a job that could not be done at all: negative, and why is in err */
    struct err err;
};

/* The value of a parameter, by its place in the table. */
static inline const char *tool_text_at(const struct tool_job *job, size_t index)
{
    return job->values.at[index].text.data;
}

static inline int64_t tool_number_at(const struct tool_job *job, size_t index)
{
    return job->values.at[index].number;
}

/* What the model is told in place of anything else: the tool could not do what was asked. */
void tool_job_refuse(struct tool_job *job, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same with an error of the host, if it is one that a model can do something about: 0.
 * Otherwise the error itself: it keeps tools from being run. */
int tool_job_fail(struct tool_job *job, int r, struct err *err);

/* A path that may be relative, as processes are given it; the caller frees. */
char *tool_path(const char *path);

/* Milliseconds that are left for it, at most `most` (0: no limit but the deadline's); 0: for ever.
 */
uint64_t tool_job_left_ms(const struct tool_job *job, uint64_t most);
