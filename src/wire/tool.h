/* Tools whose work is done by a tool worker (src/tools) inside the sandbox, and how their
 * parameters travel there. A worker speaks the messages of wire/file.h; of its requests it knows
 * one:
 *
 *   TOOL    the daemon goes on with DATA..., END: the values, encoded as below;
 *           then DATA..., EVENT..., RESULT: the content, what was changed, how it ended
 *
 * The daemon has checked all parameters and put defaults in their places, so a worker finds one
 * value for each, of the type that the table (toolbox/table.c) gives it, in the order of that
 * table. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum {
    TOOL_VALUES_MAX = 16,                /* parameters of a tool */
    TOOL_LIST_MAX = 1024,                /* elements of a list */
    TOOL_PARAMS_MAX = 16 * 1024 * 1024,  /* bytes of all values together */
    TOOL_CONTENT_MAX = 24 * 1024 * 1024, /* bytes that a worker may answer with */
    TOOL_EVENTS_MAX = 64,                /* paths that a worker may tell of */
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

/* Which value is which: the order of the parameters in the table. */
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

/* Values of GREP_MODE and GLOB_SORT: the place in the table's choices. */
enum grep_mode { GREP_CONTENT, GREP_FILES, GREP_COUNT };
enum glob_sort { GLOB_BY_NAME, GLOB_BY_TIME };

enum tool_type {
    TOOL_TEXT, /* bytes; a path never has a NUL inside, a content may */
    TOOL_NUMBER,
    TOOL_FLAG,   /* a number, 0 or 1 */
    TOOL_CHOICE, /* a number, the place in a list of words */
    TOOL_TEXTS,
    TOOL_EDITS,
    TOOL_TYPES
};

struct tool_text {
    const char *data; /* a NUL stands behind len bytes */
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
    union { /* `count` of them, of a list */
        struct tool_text *texts;
        struct tool_edit *edits;
    };
    size_t count;
};

/* Values that were decoded, with the memory they need. */
struct tool_values {
    struct tool_value at[TOOL_VALUES_MAX];
    size_t count;
};

/* How a tool ended. */
enum tool_flag {
    TOOL_IS_ERROR = 1 << 0, /* the content says what was wrong, and what to do */
    TOOL_IS_CUT =
        1 << 1, /* there is more than the parameters let it tell, and the content says so */
    TOOL_IS_IMAGE = 1 << 2, /* the content is the image itself, of type `mime` */
    TOOL_ALL_FLAGS = (1 << 3) - 1,
};

struct tool_outcome {
    uint32_t flags;
    char mime[TOOL_MIME_MAX + 1]; /* "": text */
};

/* Appends the values: 0, -EMSGSIZE, -ENOBUFS or -ENOMEM. */
int tool_put_values(struct buf *out, const struct tool_value *values, size_t count);

/* Takes them apart; the texts point into data, which must stay. 0, -EPROTO or -ENOMEM. */
int tool_get_values(const char *data, size_t len, struct tool_values *ret);
void tool_values_done(struct tool_values *values);
