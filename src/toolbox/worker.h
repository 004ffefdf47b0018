/* Executes one tool in a tool worker (src/tools) inside a sandbox. */
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
    const struct tool_value *values; /* one for each parameter of the table */
    size_t count;
    int watch_fd;         /* reports a hang-up when the client disconnects; -1: none */
    uint64_t deadline_ms; /* by clock_ms(); 0: none */
    bool is_read_only;    /* the client is read-only and may use only a share of the workers */
};

struct tool_worker_change {
    char kind; /* A or M, as in diff */
    char *path;
};

/* The reply of a worker; all of it was checked, because the sandbox may be hostile. */
struct tool_worker_reply {
    struct buf content; /* valid UTF-8 without NUL, or an image */
    struct tool_outcome outcome;
    struct tool_worker_change changes[TOOL_EVENTS_MAX];
    size_t change_count;
};

/* Runs the tool; the sandbox must be in a state that allows exec. The caller keeps a reference to
 * the sandbox, which is not idle meanwhile. Returns 0 when the worker has replied, also with an
 * error of the tool (TOOL_IS_ERROR). Returns -ECANCELED when the client has disconnected, and
 * -ETIMEDOUT (ERR_DEADLINE) after the deadline: in both cases the worker is killed, and a file has
 * either its old or its new content. On success the caller frees *ret with
 * tool_worker_reply_done. */
int tool_worker_run(struct sandbox *sandbox, const struct tool_worker_job *job,
                    struct tool_worker_reply *ret, struct err *err);

/* Received bytes of a reply that are not parsed yet. */
struct tool_worker_parser {
    struct file_parser parser;
    struct buf in;
    size_t taken; /* bytes of `in` that are parsed */
};

/* Parses the received bytes. Returns 1 when the reply is complete, 0 when more must come, or
 * -EPROTO for a malformed reply. */
int tool_worker_parse(struct tool_worker_parser *parser, struct tool_worker_reply *reply);

/* Frees the reply; accepts a zeroed one. */
void tool_worker_reply_done(struct tool_worker_reply *reply);
