/* The tools of libholt; holt.h includes this file. A tool is a function for models: it takes a name
 * and parameters, and returns content for the model to read. docs/tools.md describes the tools. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holt.h"

#ifdef __cplusplus
extern "C" {
#endif

struct holt_tool {
    const char *name;
    const char *title;        /* a few words, for people */
    const char *description;  /* for a model */
    const char *input_schema; /* JSON Schema of the parameters */
    bool is_read_only;        /* changes nothing */
    bool is_destructive;      /* may remove or overwrite data */
    bool is_idempotent;       /* a repeated call has no further effect */
    bool is_open_world;       /* reaches beyond the sandbox */
    uint32_t tier; /* 0: the host, 1: a worker inside the sandbox, 2: a process in its runtime */
};

struct holt_tool_list {
    size_t count;
    const struct holt_tool *const *items;
};

HOLT_API int holt_tool_list(struct holt *holt, int64_t deadline, struct holt_tool_list **ret,
                            struct holt_error *error);

enum holt_tool_snapshot {
    HOLT_TOOL_SNAPSHOT_DEFAULT, /* the default of the daemon (tool.snapshots) */
    HOLT_TOOL_SNAPSHOT_YES,
    HOLT_TOOL_SNAPSHOT_NO,
};

struct holt_tool_call {
    size_t size;
    const char *tool;
    const char *params; /* a JSON object; NULL: none */
    /* A second call with the same id and parameters joins the first, or gets its stored result; a
     * rollback discards it. Calls with an id are retried if the daemon is unavailable, and continue
     * after the deadline of their caller. NULL: none. */
    const char *id;
    uint64_t timeout_ms;        /* 0: default (tool.timeout) */
    uint64_t max_output_tokens; /* of about 4 bytes; 0: default (tool.output-tokens) */
    uint64_t memory_bytes;      /* of the process of the tool; 0: default (tool.memory) */
    uint32_t cpu_millis;
    bool wants_changed; /* return the changed paths */
    enum holt_tool_snapshot snapshot;
    /* Receives progress until the result arrives, see holt_output_fn. The call is then a stream and
     * not retried. NULL: no progress. */
    holt_output_fn on_progress;
    void *context;
    const char *tier; /* the runtime of the process of bash; NULL: default (tools.tier.bash) */
};

struct holt_tool_block {
    const char *data; /* text, or the bytes of an image; NUL-terminated */
    size_t len;
    const char *mime_type; /* of an image; "": text */
};

struct holt_tool_change {
    const char *kind; /* "A", "M" or "D" */
    const char *path;
};

struct holt_tool_result {
    /* All blocks as one text, separated by newlines; an image is a line with its description. */
    const char *content;
    size_t content_len;
    size_t block_count;
    const struct holt_tool_block *const *blocks;
    bool is_error;
    bool has_exit_code;
    int exit_code;
    bool is_timed_out;
    bool is_oom; /* a process was killed because the sandbox was out of memory */
    bool is_truncated;
    uint64_t shown_bytes; /* of text, if it is truncated */
    uint64_t total_bytes;
    const char *handle; /* for holt_tool_read_output; "": nothing else is kept */
    uint64_t duration_ms;
    uint32_t tier;
    const char *snapshot_id;    /* "": none was taken */
    const char *snapshot_error; /* why the requested snapshot failed */
    size_t changed_count;
    const struct holt_tool_change *const *changed;
    bool is_changed_truncated; /* more paths have changed */
    bool is_repeated;          /* the stored result of an earlier call */
};

/* Calls a tool. If the tool itself fails, the call succeeds: is_error is set, and the content gives
 * the reason. */
HOLT_API int holt_tool_execute(struct holt *holt, const char *sandbox,
                               const struct holt_tool_call *call, int64_t deadline,
                               struct holt_tool_result **ret, struct holt_error *error);

struct holt_tool_output {
    const char *text; /* NUL-terminated */
    size_t len;
    uint64_t total_bytes;
};

struct holt_tool_part {
    size_t size;
    const char *handle;
    uint64_t offset;
    uint64_t limit; /* bytes, cut at a character boundary; 0: as many as fit in a reply */
};

/* Reads a part of a truncated result. */
HOLT_API int holt_tool_read_output(struct holt *holt, const char *sandbox,
                                   const struct holt_tool_part *part, int64_t deadline,
                                   struct holt_tool_output **ret, struct holt_error *error);

#ifdef __cplusplus
}
#endif
