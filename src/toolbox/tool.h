/* Tools for agents: a name and parameters in, content that a model reads out. A call is begun,
 * asked for what comes next until its result is there, and closed, as a process is read.
 *
 * A tool that could not do what was asked (no such file, a parameter missing) is not an error here:
 * the result says so to the model (is_error). An error is what keeps tools from being run at all:
 * no such sandbox, paused, the client has gone.
 *
 * A call with an id is made once: whoever comes with the same id and parameters while it goes on
 * waits for the same result, whoever comes later gets it again, also from the next daemon. It goes
 * on when its client goes away. A rollback forgets it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/core/limits.h"

struct err;
struct host_extension;
struct sandbox;
struct tool_call;

enum {
    TOOL_ID_MAX = 128,           /* bytes of a call id */
    TOOL_TOKEN_BYTES = 4,        /* about */
    TOOL_SILENCE_MS = 10 * 1000, /* after which a sign of life is an event */
};

struct tool_request {
    const char *name;
    const json_t *params;       /* an object; NULL: none */
    const char *call_id;        /* NULL or "": none */
    uint64_t timeout_ms;        /* of the whole call; 0: the daemon's (tool.timeout) */
    uint64_t max_output_tokens; /* of all text together; 0: the daemon's (tool.output-tokens) */
    uint64_t memory_bytes;      /* of a process that is started; 0: the daemon's default, if any */
    uint32_t cpus_milli;
    bool wants_changed; /* result.changed is wanted */
    int snapshot; /* 1: a snapshot after it, 0: none, -1: as the daemon does (tool.snapshots) */
    bool is_read_only; /* whoever asks may change nothing: other tools are refused */
};

enum tool_event_kind { TOOL_PROGRESS, TOOL_RESULT };

struct tool_block {
    const char *text; /* UTF-8, NUL behind it; of an image base64 */
    size_t len;
    const char *mime; /* NULL: text */
};

struct tool_change {
    char kind; /* A, M, D: as diff */
    const char *path;
};

struct tool_result {
    const struct tool_block *blocks;
    size_t block_count;
    bool is_error;
    bool has_exit_code;
    int exit_code;
    bool timed_out;
    bool oom;
    bool is_truncated;     /* then: */
    uint64_t shown, total; /* bytes of text */
    const char *handle;    /* for read_output, and tool_read_output; NULL: nothing more is kept */
    uint64_t duration_ms;
    unsigned tier;              /* 0 the host, 1 a worker, 2 a process */
    const char *snapshot_id;    /* NULL: none was taken */
    const char *snapshot_error; /* NULL, or why none could be */
    const struct tool_change *changed;
    size_t changed_count;
    bool changed_is_cut; /* there are more */
    bool is_repeated;    /* the call was made before */
};

/* Valid until the next call. */
struct tool_event {
    enum tool_event_kind kind;
    struct {
        const char *text;
        size_t len;
        bool is_stderr;
    } progress;
    const struct tool_result *result;
};

/* Keeps the data of the tools with the host and its sandboxes; host_open gets it. */
extern const struct host_extension toolbox_extension;

/* Checks what can be checked at once. The sandbox must stay referenced until the call is closed.
 * watch_fd (a connection; -1: none) hangs up when the client goes away. */
int tool_open(struct sandbox *sandbox, const struct tool_request *request, int watch_fd,
              struct tool_call **ret, struct err *err);

/* Waits for the next event; the last is the result. Progress without text says that a command, or
 * somebody else's call, goes on in silence. -ECANCELED when the client has gone. */
int tool_next(struct tool_call *call, struct tool_event *ret, struct err *err);

/* Ends what it started, unless it is over or has an id: then it goes on by itself. Accepts NULL. */
void tool_close(struct tool_call *call);

/* The client wants it to end, with an id or without: the next tool_close ends it. From any thread
 * that keeps the call from being closed. */
void tool_cancel(struct tool_call *call);

/* What a result was cut from: up to limit bytes (0: as many as fit into a result) from offset on,
 * cut at a character; ret->text is the caller's to free. ERR_NOT_FOUND for a handle that is not
 * known (any more). */
struct tool_part {
    const char *handle;
    uint64_t offset, limit;
};
struct tool_output {
    char *text;
    size_t len;
    uint64_t offset; /* where it begins: at the first character from where it was wanted */
    uint64_t total;  /* bytes of the whole */
};
int tool_read_output(struct sandbox *sandbox, const struct tool_part *part, struct tool_output *ret,
                     struct err *err);
