/* Jobs of the toolbox, for its own files.
 *
 * A job executes one tool. The call that started it and all calls that joined it by its id refer to
 * it. One thread at a time drives a job and owns its unlocked fields until the job has ended. */
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
    TOOL_TEXT_MAX = 40 * 1024 * 1024, /* of a result before truncation, or of an image in base64 */
    TOOL_CHANGES_MAX = 1000,
    TOOL_CHANGES_BYTES = 1024 * 1024, /* of all paths together */
    TOOL_HANDLE_SIZE = 24,
    TOOL_HASH_SIZE = 65,  /* SHA-256 as hex */
    TOOL_IMAGES_MAX = 16, /* of the code of one call */
};

struct tool_progress {
    const char *text;
    size_t len;
    bool is_stderr;
};

/* The implementation of a group of tools. The thread that drives the job calls everything except
 * cancel. */
struct tool_kind {
    /* Runs until there is progress (1), the job has ended (0), or it fails without a result
     * (negative, with err set). Returns -ECANCELED when the peer of watch_fd (-1: none) has hung
     * up; if can_resume is set, it may then be called again. */
    int (*next)(struct tool_job *job, int watch_fd, struct tool_progress *ret, struct err *err);

    /* Ends the work unless it has ended, and frees the state. NULL: there is no state. */
    void (*stop)(struct tool_job *job);

    /* Makes `next` return soon; called with the job's lock held. NULL: `next` never blocks for
     * long. */
    void (*cancel)(struct tool_job *job);

    bool can_resume;

    /* Whether a new job of the call that an earlier daemon process began would join what that has
     * started, and start nothing. NULL: never. */
    bool (*can_rejoin)(struct tool_job *job);
};

extern const struct tool_kind tool_by_worker, tool_by_process, tool_by_shell, tool_by_launch,
    tool_by_host;

/* A call that waits for a job driven by another thread. */
struct tool_waiter {
    struct tool_waiter *next;
    int event_fd;
};

struct tool_job {
    struct sandbox *sandbox; /* referenced */
    const struct tool *tool;
    const struct tool_kind *kind;
    json_t *params; /* referenced; values point into it */
    struct tool_values values;
    uint64_t began_ms;
    uint64_t began_ns;
    uint64_t deadline_ms; /* by clock_ms(); 0: none */
    uint64_t budget;      /* bytes of text */
    uint64_t memory_bytes;
    uint32_t cpus_milli;
    atomic_int refs;
    void *state;             /* of its kind */
    struct tool_job *next;   /* in the job table; under the lock of the table */
    uint32_t generation;     /* of the sandbox's files, at the start */
    uint32_t end_generation; /* at the end; stored with the result */
    bool wants_changed;
    bool wants_snapshot;
    bool is_read_only;  /* the client is read-only */
    bool is_background; /* its result is stored only if it is kept */
    bool has_begun;
    bool has_fallback; /* git_commit used the fallback identity */
    bool has_mark;
    bool is_stronger;              /* its process runs in a stronger runtime than the sandbox */
    char *tier;                    /* of the request; NULL: none */
    char call_id[TOOL_ID_MAX + 1]; /* "": none */
    char id_hash[TOOL_HASH_SIZE];  /* of call_id */
    char digest[TOOL_HASH_SIZE];   /* of tool and parameters; "": those of any call */
    struct sandbox_mark mark;      /* the files before the call, for `changed` */

    /* Collected while the job runs: */
    struct buf text;               /* of the result, or an image in base64 */
    struct bounded_dir_file spill; /* the text, when it is too long for memory */
    const char *mime;              /* of an image, points to mime_text */
    struct buf paths;              /* changed paths, each NUL-terminated */
    struct tool_change *changes;

    /* Set at the end: */
    struct tool_result result;
    struct tool_block *blocks; /* the text or image, then images of the code; freed with the job */
    size_t block_count;
    struct buf images; /* lines of a type and base64, which the blocks point into */
    char mime_text[TOOL_MIME_MAX + 1];
    char handle[TOOL_HANDLE_SIZE];
    char snapshot_id[SNAPSHOT_NAME_MAX + 1];
    char snapshot_error[sizeof(((struct err *)NULL)->msg)];

    struct lock lock;        /* protects all fields below */
    struct process *process; /* the running one, for cancel; borrowed from the state */
    struct shell_run *shell; /* likewise */
    struct tool_waiter *waiters;
    int cancel_fd;
    int failure; /* negative: the job failed without a result, with err */
    struct err err;
    bool is_canceled;
    bool is_kept;   /* see tool_keep */
    bool is_ending; /* too late to keep it */
    bool is_over;
    bool is_repeated; /* the result is that of an earlier call */
};

/* Makes a job with one reference; its parameters are not checked yet. */
struct tool_job *tool_job_new(struct sandbox *sandbox, const struct tool *tool,
                              const struct tool_request *request);

/* Takes another reference. */
struct tool_job *tool_job_ref(struct tool_job *job);

/* Accepts NULL. */
void tool_job_unref(struct tool_job *job);

/* Drives the job until there is progress (1) or it has ended, with a result or a failure (0).
 * Returns -ECANCELED when the peer of watch_fd has hung up; then the job has not ended. */
int tool_job_drive(struct tool_job *job, int watch_fd, struct tool_progress *ret);

/* Stops the work, then ends the job with its result (r is 0) or with an error. */
void tool_job_finish(struct tool_job *job, int r, const struct err *err);

/* Marks a job whose result is complete as ended, wakes all calls that wait for it and removes it
 * from the job table. */
void tool_job_complete(struct tool_job *job, int r, const struct err *err);

bool tool_job_is_over(struct tool_job *job);
bool tool_job_is_canceled(struct tool_job *job);

/* --- for kinds ------------------------------------------------------------------------------- */

/* Return the value of a parameter, by its index in the table. */
static inline const char *tool_text_at(const struct tool_job *job, size_t index)
{
    return job->values.at[index].text.data;
}

static inline int64_t tool_number_at(const struct tool_job *job, size_t index)
{
    return job->values.at[index].number;
}

/* Replaces the text of the result with an error message for the model. */
void tool_job_set_error(struct tool_job *job, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Handles an error of the host: makes it the result and returns 0 if the model can do something
 * about it, otherwise returns r. */
int tool_job_fail(struct tool_job *job, int r, struct err *err);

/* Takes the images of a result: pairs of lines, a MIME type and base64. */
void tool_job_set_images(struct tool_job *job, struct buf *images);

/* Adds a path that was created, modified or deleted to the result. */
void tool_job_add_change(struct tool_job *job, char kind, const char *path);

/* Returns the absolute path of a path that may be relative to /workspace; the caller frees it. */
char *tool_path(const char *path);

/* Returns the milliseconds until the deadline, at most `most` (0: no other limit); 0: no limit. */
uint64_t tool_job_left_ms(const struct tool_job *job, uint64_t most);

/* Sets ERR_INVALID: an earlier call with this id had another tool or other parameters. */
int tool_job_refuse_reused_id(const struct tool_job *job, struct err *err);

/* --- result.c -------------------------------------------------------------------------------- */

/* Fills in the result: changes, snapshot, the text truncated to its budget. */
void tool_result_finish(struct tool_job *job);

/* Fills in the pointers of a result whose fields and text are set. */
void tool_result_restore(struct tool_job *job);

/* --- port.c ---------------------------------------------------------------------------------- */

/* Run expose_port and network_status, as tool_kind.next does. */
int tool_expose_port(struct tool_job *job, struct err *err);
int tool_network_status(struct tool_job *job, struct err *err);
