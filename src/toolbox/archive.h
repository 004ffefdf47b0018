/* Stored results of the tool calls of one sandbox. They are files in the state directory, so they
 * survive the daemon; they are removed with the sandbox:
 *
 *   tools/SANDBOX/calls/HASH   result of a finished call with an id (HASH is that of the id)
 *   tools/SANDBOX/outputs/oN   full text of a truncated result; oN is its handle
 *
 * A call's file is one line of JSON followed by the bytes of its content. The line contains the
 * generation of the sandbox's files, so that a result that a rollback has undone is ignored, also
 * after a restart of the daemon. The file of a call that was kept (tool_keep) and has not ended has
 * its parameters as content. */
#pragma once

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "toolbox/bounded_dir.h"

struct err;
struct sandbox;
struct tool;
struct tool_job;

enum {
    ARCHIVE_CALLS_MAX = 512,
    ARCHIVE_CALLS_BYTES = 64 * 1024 * 1024,
    ARCHIVE_OUTPUTS_MAX = 64,
    ARCHIVE_OUTPUTS_BYTES = 64 * 1024 * 1024,
};

struct tool_archive {
    struct bounded_dir calls, outputs;
    atomic_int read_only_processes; /* running for tool calls of read-only clients */
};

/* Returns the archive of the sandbox; the first call makes it. */
struct tool_archive *tool_archive_of(struct sandbox *sandbox);

struct tool_archive *tool_archive_new(struct sandbox *sandbox);
void tool_archive_free(struct tool_archive *archive);

/* Removes all stored results of a sandbox that is being destroyed; later ones are not stored. */
void tool_archive_remove(struct sandbox *sandbox);

/* Stores the result of a job that has an id. Errors are ignored: a repeated call then executes the
 * tool again. */
void tool_archive_store(struct tool_job *job);

/* Fills in the stored result of a call with the job's id and returns 1; returns 0 when there is
 * none, or ERR_INVALID when that call had another tool or other parameters. */
int tool_archive_find(struct tool_job *job, struct err *err);

/* Stores a job that has not ended, until its result replaces that. Returns 0 or -errno. */
int tool_archive_keep(struct tool_job *job);

/* Finds a job that was stored so, by the id of another one. The caller drops the parameters. */
struct tool_kept {
    const struct tool *tool;
    json_t *params;
    uint32_t generation;
};
bool tool_archive_find_kept(struct tool_job *job, struct tool_kept *ret);
