/* What is kept of tool calls of one sandbox, below the state directory, where it outlives the
 * daemon but not the sandbox:
 *
 *   tools/SANDBOX/calls/HASH   the result of a finished call that has an id (HASH is of the id)
 *   tools/SANDBOX/outputs/oN   a text that a result was cut from; oN is its handle
 *
 * A call's file is one line of JSON and, behind it, the bytes of its content. It says which
 * generation of the sandbox's files it was made in: what a rollback has undone is not known any
 * more, whatever happened to the daemon meanwhile. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "toolbox/bounded_dir.h"

struct err;
struct sandbox;
struct tool_job;

enum {
    ARCHIVE_CALLS_MAX = 512,
    ARCHIVE_CALLS_BYTES = 64 * 1024 * 1024,
    ARCHIVE_OUTPUTS_MAX = 64,
    ARCHIVE_OUTPUTS_BYTES = 64 * 1024 * 1024,
};

struct tool_archive {
    struct bounded_dir calls, outputs;
    atomic_int read_only_processes; /* that run for tool calls of read-only clients */
};

/* Returns the archive of the sandbox; the first call makes it. */
struct tool_archive *tool_archive_of(struct sandbox *sandbox);

struct tool_archive *tool_archive_new(struct sandbox *sandbox);
void tool_archive_free(struct tool_archive *archive);

/* The sandbox is being destroyed: nothing is kept any more. */
void tool_archive_remove(struct sandbox *sandbox);

/* Keeps the result of a job that has an id. What cannot be kept is not: a retry then does it again.
 */
void tool_archive_keep(struct tool_job *job);

/* Fills in the result that a call with the job's id had: 1, or 0 when none is known, or ERR_INVALID
 * when that call was another one. */
int tool_archive_find(struct tool_job *job, struct err *err);
