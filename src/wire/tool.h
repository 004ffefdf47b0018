/* Tools that a tool worker (src/tools) executes inside the sandbox, and the encoding of their
 * parameters. A worker uses the messages of wire/file.h; it accepts one request:
 *
 *   TOOL    the daemon continues with DATA..., END: the values, encoded as below;
 *           then DATA..., EVENT..., RESULT: the content, the changes, the outcome
 *
 * The daemon has checked all parameters and filled in defaults, so a worker receives one value for
 * each, of the type given in the table (toolbox/table.c) and in the order of that table. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum {
    TOOL_VALUES_MAX = 16,                /* parameters of a tool */
    TOOL_LIST_MAX = 1024,                /* elements of a list */
    TOOL_PARAMS_MAX = 16 * 1024 * 1024,  /* bytes of all values together */
    TOOL_CONTENT_MAX = 24 * 1024 * 1024, /* bytes of a worker's reply */
    TOOL_EVENTS_MAX = 64,                /* changed paths that a worker may report */
    TOOL_MIME_MAX = 64,
};

enum worker_tool {
    WORKER_READ_FILE,
    WORKER_WRITE_FILE,
    WORKER_EDIT_FILE,
    WORKER_MULTI_EDIT,
    WORKER_LIST_DIR,
    WORKER_GREP,
    WORKER_GLOB,
    WORKER_TOOLS
};

/* Indexes of the values: the order of the parameters in the table. */
enum { READ_PATH, READ_OFFSET, READ_LIMIT };
enum { WRITE_PATH, WRITE_CONTENT, WRITE_CREATE_DIRS };
enum { EDIT_PATH, EDIT_OLD, EDIT_NEW, EDIT_ALL };
enum { MULTI_EDIT_PATH, MULTI_EDIT_EDITS };
enum { LIST_PATH, LIST_DEPTH, LIST_MAX };
enum {
    GREP_PATTERN,
    GREP_PATH,
    GREP_INCLUDE,
    GREP_EXCLUDE,
    GREP_LITERAL,
    GREP_IGNORE_CASE,
    GREP_MODE,
    GREP_CONTEXT,
    GREP_MAX,
    GREP_MAX_BYTES,
    GREP_GITIGNORE,
    GREP_HIDDEN,
};
enum { GLOB_PATTERN, GLOB_PATH, GLOB_MAX, GLOB_SORT, GLOB_GITIGNORE, GLOB_HIDDEN };

/* Values of GREP_MODE and GLOB_SORT: indexes into the table's choices. */
enum grep_mode { GREP_CONTENT, GREP_FILES, GREP_COUNT };
enum glob_sort { GLOB_BY_NAME, GLOB_BY_TIME };

enum tool_type {
    TOOL_TEXT, /* bytes; a path never contains NUL, a content may */
    TOOL_NUMBER,
    TOOL_FLAG,   /* a number, 0 or 1 */
    TOOL_CHOICE, /* a number: index into a list of words */
    TOOL_TEXTS,
    TOOL_EDITS,
    TOOL_TYPES
};

struct tool_text {
    const char *data; /* followed by a NUL */
    size_t len;
};

struct tool_edit {
    struct tool_text old_text, new_text;
    bool all;
};

struct tool_value {
    enum tool_type type;
    int64_t number;
    struct tool_text text;
    union { /* `count` elements of a list */
        struct tool_text *texts;
        struct tool_edit *edits;
    };
    size_t count;
};

/* Decoded values with the memory that they need. */
struct tool_values {
    struct tool_value at[TOOL_VALUES_MAX];
    size_t count;
};

/* The outcome of a tool. */
enum tool_flag {
    TOOL_IS_ERROR = 1 << 0, /* the content describes the error and the remedy */
    TOOL_IS_CUT = 1 << 1,   /* the content is truncated, and says so */
    TOOL_IS_IMAGE = 1 << 2, /* the content is an image of type `mime` */
    TOOL_ALL_FLAGS = (1 << 3) - 1,
};

struct tool_outcome {
    uint32_t flags;
    char mime[TOOL_MIME_MAX + 1]; /* "": text */
};

/* Appends the values. Returns 0, -EMSGSIZE, -ENOBUFS or -ENOMEM. */
int tool_put_values(struct buf *out, const struct tool_value *values, size_t count);

/* Decodes values; their texts point into data, which must stay valid. Returns 0, -EPROTO or
 * -ENOMEM. */
int tool_get_values(const char *data, size_t len, struct tool_values *ret);
void tool_values_done(struct tool_values *values);
