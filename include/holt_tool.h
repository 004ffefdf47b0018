/* libholt's tools, a part of holt.h, which includes it: what a model calls, a name and parameters
 * in and content for it to read out. docs/tools.md has all of them. */
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
    const char *title;        /* a few words, for a person */
    const char *description;  /* for a model */
    const char *input_schema; /* JSON Schema of the parameters */
    bool is_read_only;        /* changes nothing */
    bool is_destructive;      /* may take away what was there */
    bool is_idempotent;       /* twice is as once */
    bool is_open_world;       /* reaches beyond the sandbox */
    uint32_t tier;            /* 0: the host, 1: a worker inside the sandbox, 2: a process */
};

struct holt_tool_list {
    size_t count;
    const struct holt_tool *const *items;
};

HOLT_API int holt_tool_list(struct holt *holt, int64_t deadline, struct holt_tool_list **ret,
                            struct holt_error *error);

enum holt_tool_snapshot {
    HOLT_TOOL_SNAPSHOT_DEFAULT, /* as the daemon does (tool.snapshots) */
    HOLT_TOOL_SNAPSHOT_YES,
    HOLT_TOOL_SNAPSHOT_NO,
};

struct holt_tool_call {
    size_t size;
    const char *tool;
    const char *params; /* a JSON object; NULL: none */
    /* A second call with the same id and parameters joins the first, or gets its result again; a
     * rollback forgets it. Calls with an id are tried again when the daemon is unavailable, and go
     * on when their caller is late. NULL: none. */
    const char *id;
    uint64_t timeout_ms;        /* 0: the daemon's (tool.timeout) */
    uint64_t max_output_tokens; /* of about 4 bytes; 0: the daemon's (tool.output-tokens) */
    uint64_t memory_bytes;      /* of what the tool starts; 0: the daemon's default */
    uint32_t cpu_millis;
    bool wants_changed; /* changed is wanted */
    enum holt_tool_snapshot snapshot;
    /* Gets what the tool has to say until its result is there, as holt_output_fn says. Then the
     * call is a stream, which is not tried again. NULL: nobody wants it. */
    holt_output_fn on_progress;
    void *context;
};

struct holt_tool_block {
    const char *data; /* text, or the bytes of an image; a NUL stands behind it */
    size_t len;
    const char *mime_type; /* of an image; "": text */
};

struct holt_tool_change {
    const char *kind; /* "A", "M" or "D" */
    const char *path;
};

struct holt_tool_result {
    /* All blocks as one text, a newline between them; of an image a line that names it. */
    const char *content;
    size_t content_len;
    size_t block_count;
    const struct holt_tool_block *const *blocks;
    bool is_error;
    bool has_exit_code;
    int exit_code;
    bool is_timed_out;
    bool is_oom; /* a process was killed because the sandbox had no memory left */
    bool is_truncated;
    uint64_t shown_bytes; /* of text, where it is truncated */
    uint64_t total_bytes;
    const char *handle; /* for holt_tool_read_output; "": no more is kept */
    uint64_t duration_ms;
    uint32_t tier;
    const char *snapshot_id;    /* "": none was taken */
    const char *snapshot_error; /* why there is none though there should be */
    size_t changed_count;
    const struct holt_tool_change *const *changed;
    bool is_changed_truncated; /* there are more */
    bool is_repeated;          /* the call was made before */
};

/* Runs a tool. One that could not do what was asked has not failed as a call: is_error says so, and
 * the content says why. */
HOLT_API int holt_tool_execute(struct holt *holt, const char *sandbox,
                               const struct holt_tool_call *call, int64_t deadline,
                               struct holt_tool_result **ret, struct holt_error *error);

struct holt_tool_output {
    const char *text; /* a NUL stands behind it */
    size_t len;
    uint64_t total_bytes;
};

struct holt_tool_part {
    size_t size;
    const char *handle;
    uint64_t offset;
    uint64_t limit; /* bytes, cut at a character; 0: as many as one answer holds */
};

/* More of a result that was truncated. */
HOLT_API int holt_tool_read_output(struct holt *holt, const char *sandbox,
                                   const struct holt_tool_part *part, int64_t deadline,
                                   struct holt_tool_output **ret, struct holt_error *error);

#ifdef __cplusplus
}
#endif
