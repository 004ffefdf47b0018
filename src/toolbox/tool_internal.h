/* What the files of the tools' engine share.
 *
 * A job is one piece of work: whoever asked for it, and whoever joined by its id, has a call on it.
 * Exactly one thread at a time drives a job; its fields are that thread's until it is over. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/lock.h"
#include "host/process/process.h"
#include "host/sandbox/info.h"
#include "host/sandbox/mark.h"
#include "toolbox/bounded_dir.h"
#include "toolbox/table.h"
#include "toolbox/tool.h"

struct shell_run;
struct tool_job;
struct tool_kind;

enum {
    TOOL_EXIT_TIMED_OUT = 124,
    TOOL_TEXT_MAX = 40 * 1024 * 1024, /* of a result before it is cut, or of an image in base64 */
    TOOL_CHANGES_MAX = 1000,
    TOOL_CHANGES_BYTES = 1024 * 1024, /* of their paths together */
    TOOL_HANDLE_SIZE = 24,
    TOOL_HASH_SIZE = 65, /* SHA-256 as hex */
};

struct tool_progress {
    const char *text;
    size_t len;
    bool is_stderr;
};

/* How a kind of tool is done. Everything but cancel is called by the thread that drives the job. */
struct tool_kind {
    /* Goes on until there is something to tell (1), the job is over (0), or it cannot be done at
     * all (negative, with err set). -ECANCELED when the peer of watch_fd (-1: nobody looks) has
     * hung up: of one that can_resume it may then be called again. */
    int (*next)(struct tool_job *job, int watch_fd, struct tool_progress *ret, struct err *err);

    /* Ends what goes on, unless it is over, and frees the state. NULL: there is none. */
    void (*stop)(struct tool_job *job);

    /* Makes next return soon; with the job's lock held. NULL: it does anyway. */
    void (*cancel)(struct tool_job *job);

    bool can_resume;
};

extern const struct tool_kind tool_by_worker, tool_by_process, tool_by_shell, tool_by_launch,
    tool_by_turn;

/* A call that waits for a job that somebody else drives. */
struct tool_waiter {
    struct tool_waiter *next;
    int event_fd;
};

struct tool_job {
    struct sandbox *sandbox; /* referenced */
    const struct tool *tool;
    const struct tool_kind *kind;
    json_t *params;            /* referenced; values point into it */
    struct tool_values values; /* checked */
    uint64_t began_ms;
    uint64_t began_ns;
    uint64_t deadline_ms; /* of clock_ms(); 0: none */
    uint64_t budget;      /* bytes of text */
    uint64_t memory_bytes;
    uint32_t cpus_milli;
    atomic_int refs;
    void *state;              /* of its kind */
    struct tool_job *next;    /* in the job table's list, under its lock */
    uint32_t generation;      /* of the sandbox's files, when it began */
    uint32_t kept_generation; /* and when it was over: what its result is of */
    bool wants_changed;
    bool wants_snapshot;
    bool is_read_only; /* the client may change nothing */
    bool has_begun;
    bool has_fallback; /* of git_commit: who commits was not configured */
    bool has_mark;
    char call_id[TOOL_ID_MAX + 1]; /* "": none */
    char id_hash[TOOL_HASH_SIZE];  /* of it */
    char digest[TOOL_HASH_SIZE];   /* of tool and parameters */
    struct sandbox_mark mark;      /* what the files were, if that will be asked */

    /* What comes of it, while it goes on: */
    struct buf text; /* all that there is to say, or base64 of an image */
    struct bounded_dir_file
        spill;        /* or all that there is, when that is more than is kept in memory */
    const char *mime; /* of an image, points to mime_text */
    struct buf paths; /* those that were changed, each with a NUL behind it */
    struct tool_change *changes;

    /* and in the end: */
    struct tool_result result;
    struct tool_block block;
    char mime_text[TOOL_MIME_MAX + 1];
    char handle[TOOL_HANDLE_SIZE];
    char snapshot_id[SNAPSHOT_NAME_MAX + 1];
    char snapshot_error[sizeof(((struct err *)NULL)->msg)];

    struct lock lock;        /* over all below; before a machine's */
    struct process *process; /* what it runs now, referenced, for who cancels */
    struct shell_run *shell;
    struct tool_waiter *waiters;
    int cancel_fd;
    int failure; /* of a job that could not be done at all: negative, and why is in err */
    struct err err;
    bool is_canceled;
    bool is_over;
    bool is_repeated; /* an earlier call had this result */
};

struct tool_job *tool_job_new(struct sandbox *sandbox, const struct tool *tool,
                              const struct tool_request *request);
struct tool_job *tool_job_ref(struct tool_job *job);

/* Accepts NULL. */
void tool_job_unref(struct tool_job *job);

/* Drives it until there is something to tell (1) or it is over (0), be it that it has failed. Or
 * -ECANCELED, and then it is not over. */
int tool_job_drive(struct tool_job *job, int watch_fd, struct tool_progress *ret);

/* It is over, with what it has to say, or (negative) with an error. */
void tool_job_conclude(struct tool_job *job, int r, const struct err *err);

/* The same of one whose result is there already. */
void tool_job_settle(struct tool_job *job, int r, const struct err *err);

bool tool_job_is_over(struct tool_job *job);
bool tool_job_is_canceled(struct tool_job *job);

/* --- for kinds ------------------------------------------------------------------------------- */

/* Returns the tier that does its work, see struct tool_result. */
static inline unsigned tool_tier(const struct tool *tool)
{
    return tool->work == TOOL_BY_HOST ? 0 : tool->work == TOOL_BY_WORKER ? 1 : 2;
}

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

/* A path was created, modified or deleted. */
void tool_job_note_change(struct tool_job *job, char kind, const char *path);

/* A path that may be relative, as processes are given it; the caller frees. */
char *tool_path(const char *path);

/* Milliseconds that are left for it, at most `most` (0: no limit but the deadline's); 0: for ever.
 */
uint64_t tool_job_left_ms(const struct tool_job *job, uint64_t most);

/* ERR_INVALID: its id was used for something else. */
int tool_refuse_other_call(const struct tool_job *job, struct err *err);
