/* The bridge and its jobs, for the files of this folder. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/lock.h"
#include "cli/mcp/bridge.h"
#include "client/transport/mcp.h"

enum {
    MCP_LINE_MAX = 4 * 1024 * 1024, /* equal to the daemon's limit */
    MCP_CODE_INVALID = -32600,
    MCP_CODE_INTERNAL = -32603,
};

struct bridge {
    const struct mcp_bridge_options *options;
    char *path;
    int signal_fd;
    int wake_fd; /* a message was answered, or stdout was closed */

    struct lock out_lock; /* serialises writes to stdout, which may block */
    struct lock lock;     /* protects everything below */
    struct buf first; /* the initialize request, sent again if the daemon has lost the session */
    char session[MCP_SESSION_SIZE];
    unsigned under_way;
    struct job *jobs; /* requests without a session that are under way */
    bool is_broken;   /* stdout was closed */
};

/* A message in flight and its thread. */
struct job {
    struct bridge *bridge;
    struct buf line;
    json_t *message; /* NULL: not JSON */
    json_t *id;      /* for an error reply, points into it; NULL: unknown */
    bool needs_sandbox;
    bool has_repeated; /* it was sent again, because its sandbox was gone */
    bool is_stateless; /* of a revision without sessions: the end of its connection cancels it */

    struct job *next;      /* from here on: the lock of the bridge */
    struct mcp_post *post; /* NULL: not sent yet */
    bool is_cancelled;
};

/* Writes an error reply to stdout (id NULL: of an unknown request). */
void bridge_put_error(struct bridge *bridge, json_t *id, int code, const char *text);

/* Returns a copy of the current session id; "": there is none. */
void bridge_get_session(struct bridge *bridge, char ret[MCP_SESSION_SIZE]);

/* Makes a job of a line of stdin, which need not be valid. */
struct job *job_new(struct bridge *bridge, const char *line, size_t len);
void job_free(struct job *job);

/* Sends the message and writes the replies to stdout. */
void job_do(struct job *job);

/* Does that in a thread of its own, and takes the job. */
void job_start(struct job *job);

/* Does that for an initialize, and keeps the session that it opens. */
void job_initialize(struct job *job);

/* Cancels the request without a session that has this id (NULL: all). Returns whether there is
 * one. */
bool jobs_cancel(struct bridge *bridge, const json_t *id);
