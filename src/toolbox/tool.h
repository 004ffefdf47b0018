/* Tools for agents: a call has a name and parameters, its result is content for a model. The client
 * opens a call, reads its events up to the result, and closes it.
 *
 * A tool that fails (no such file, a parameter missing) is not an error here: the result tells the
 * model (is_error). An error means that no tool can run: the sandbox does not exist or is paused,
 * or the client has disconnected.
 *
 * A call with an id is executed once: a call with the same id and parameters joins one in progress
 * and gets its result; a later one gets the stored result, also from the next daemon process. Such
 * a call continues when its client disconnects. A rollback discards it. */
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
    TOOL_TOKEN_BYTES = 4,        /* estimate of the bytes of a token */
    TOOL_SILENCE_MS = 10 * 1000, /* without output; then tool_next reports empty progress */
    TOOL_BACKGROUND_MS = 5000,   /* the same of a call in the background, whatever its output */
};

struct tool_request {
    const char *name;
    const json_t *params;       /* object; NULL: none */
    const char *call_id;        /* NULL or "": none */
    uint64_t timeout_ms;        /* of the whole call; 0: the daemon's (tool.timeout) */
    uint64_t max_output_tokens; /* of all text together; 0: the daemon's (tool.output-tokens) */
    uint64_t memory_bytes;      /* of a process that the call starts; 0: the daemon's default */
    uint32_t cpus_milli;        /* likewise */
    bool wants_changed;         /* fill in result.changed */
    const char *tier;   /* runtime of the process of bash; NULL: the daemon's (tools.tier.bash) */
    int snapshot;       /* take one afterwards; 1: yes, 0: no, -1: the daemon's (tool.snapshots) */
    bool is_read_only;  /* the client is read-only: only read-only tools are allowed */
    bool is_background; /* with an id of its own: see tool_keep */
};

enum tool_event_kind { TOOL_PROGRESS, TOOL_RESULT };

struct tool_block {
    const char *text; /* NUL-terminated UTF-8; base64 for an image */
    size_t len;
    const char *mime; /* NULL: text */
};

struct tool_change {
    char kind; /* A, M or D, as in diff */
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
    bool is_truncated;
    uint64_t shown, total; /* bytes of a truncated text */
    const char *handle;    /* for tool_read_output; NULL: the full text is not stored */
    uint64_t duration_ms;
    unsigned tier;           /* 0: the host, 1: a worker, 2: a process, 3: in a stronger runtime */
    const char *snapshot_id; /* NULL: no snapshot */
    const char *snapshot_error; /* why the snapshot failed; NULL: it did not */
    const struct tool_change *changed;
    size_t changed_count;
    bool changed_is_cut; /* the list is not complete */
    bool is_repeated;    /* the result of an earlier call with the same id */
    bool is_canceled;    /* tool_cancel has ended the call */
};

/* Valid until the next tool_next or tool_close. */
struct tool_event {
    enum tool_event_kind kind;
    struct {
        const char *text;
        size_t len;
        bool is_stderr;
    } progress;
    const struct tool_result *result;
};

/* Keeps the job table with the host and an archive with each sandbox; an argument of host_open. */
extern const struct host_extension toolbox_extension;

/* Opens a call after checking the tool and the parameters. The caller keeps a reference to the
 * sandbox until tool_close. watch_fd (a connection; -1: none) reports a hang-up when the client
 * disconnects. */
int tool_open(struct sandbox *sandbox, const struct tool_request *request, int watch_fd,
              struct tool_call **ret, struct err *err);

/* Whether a thread of its own executes the call; there are only so many. */
bool tool_is_background(const struct tool_call *call);

/* Keeps a call in the background: it goes on without its client, and tool_find_call finds it until
 * its result is one of the oldest, also after a rollback and under the next daemon process. Returns
 * 0 or negative, -EALREADY if the call is over. The result of a call that is not kept is not
 * stored. */
int tool_keep(struct tool_call *call);

/* Finds a call that was kept, in progress or finished, by its id alone, and joins it; ERR_NOT_FOUND
 * if there is none. A call that an earlier daemon process has left goes on if that is possible
 * without executing anything twice; otherwise it has failed. *ret_is_over: tool_next returns the
 * result at once. */
int tool_find_call(struct sandbox *sandbox, const char *call_id, struct tool_call **ret,
                   bool *ret_is_over, struct err *err);

/* Waits for the next event; the last one is the result. Progress without text means that the call
 * still runs without output. Returns -ECANCELED when the client has disconnected. */
int tool_next(struct tool_call *call, struct tool_event *ret, struct err *err);

/* Frees the call. A call that still runs is canceled, unless it has an id: then it continues in the
 * background. Accepts NULL. */
void tool_close(struct tool_call *call);

/* Cancels the call, with or without an id; tool_close then ends it. Any thread may call it that
 * prevents a concurrent tool_close. */
void tool_cancel(struct tool_call *call);

/* Reads up to limit bytes (0: as many as fit into a result) at offset of the full text of a
 * truncated result, cut at a character boundary; the caller frees ret->text. Returns ERR_NOT_FOUND
 * for an unknown or expired handle. */
struct tool_part {
    const char *handle;
    uint64_t offset, limit;
};
struct tool_output {
    char *text;
    size_t len;
    uint64_t
        offset;     /* of the text: the first character boundary at or after the requested offset */
    uint64_t total; /* bytes of the full text */
};
int tool_read_output(struct sandbox *sandbox, const struct tool_part *part, struct tool_output *ret,
                     struct err *err);
