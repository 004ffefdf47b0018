/* Between the daemon and a file worker, which does one thing after the other to files of a sandbox
 * (guest/files/file.c). Both send messages over one byte stream, in little-endian order and without
 * gaps:
 *
 * - u32 size: bytes of payload
 * - u32 type: enum file_message_type
 * - the payload
 *
 * A worker says HELLO first. Then the daemon sends a request, the worker answers it, and so on:
 *
 *   STAT, MKDIR, MOVE   ENTRY
 *   REMOVE              END
 *   LIST                ENTRY..., END (number: 1 if there is more); with FILE_FROM_HOME the first
 *                       ENTRY is the directory itself
 *   READ                ENTRY, DATA..., END
 *   PULL                (ENTRY, DATA... | TROUBLE)..., END
 *   WRITE               the daemon goes on with DATA..., END; then ENTRY
 *   PUSH                the daemon goes on with (ENTRY, DATA...)..., END; then END
 *   WATCH               END once it watches, then EVENT... until the daemon hangs up
 *   HUB                 END; from then on the daemon sends single bytes, each with a socket over
 *                       which one WATCH is asked for and answered, until that is hung up
 *
 * A tool worker (src/tools) says HELLO too, but knows one request only, which never fails:
 *
 *   TOOL                the daemon goes on with DATA..., END: the values (wire/tool.h); then
 *                       DATA..., EVENT..., RESULT: the content, what was changed, how it ended
 *
 * Instead of any of these, and behind any ENTRY, DATA or TROUBLE, the worker may say FAILED: then
 * the request is over; of WRITE and PUSH it still reads what comes until END. The daemon may say
 * ABORT for END: what was begun is undone, and FAILED is the answer. How bytes are cut into DATA
 * means nothing. Paths are bytes; relative ones begin at FILE_WORKSPACE.
 *
 * Nothing here depends on how the bytes travel: today that is a socket that goes to holt-init with
 * the order to start a worker. To the daemon a worker is as hostile as its sandbox, so whatever is
 * not as it should be ends it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/files/file_entry.h"

struct buf;
struct tool_outcome;

#define FILE_WORKSPACE "/workspace"

/* What a user says of a file is in its extended attributes of this name. */
#define FILE_META_PREFIX "user.e2b."

enum {
    FILE_HEADER_SIZE = 8,
    FILE_DATA_MAX = 256 * 1024,
    FILE_WHOLE_MAX = 32 * 1024, /* any other payload */
    FILE_USER_MAX = 64,
    FILE_WHY_MAX = 120,
    FILE_META_MAX = 8 * 1024, /* names and values of one file together */
    FILE_WATCHES_MAX = 8192,  /* directories that one request watches */
    FILE_HUB_MAX = 256,       /* requests that one hub serves */
};

enum file_message_type {
    FILE_NONE,

    /* daemon to worker */
    FILE_STAT, /* the first ten, and HUB: struct file_request */
    FILE_LIST,
    FILE_READ,
    FILE_WRITE,
    FILE_MKDIR,
    FILE_MOVE,
    FILE_REMOVE,
    FILE_PULL,
    FILE_PUSH,
    FILE_WATCH,
    FILE_ABORT, /* empty */

    /* both */
    FILE_ENTRY, /* struct file_entry */
    FILE_DATA,  /* bytes */
    FILE_END,   /* u32 number */

    /* worker to daemon */
    FILE_HELLO,   /* u32 errno: 0, or why there is no worker */
    FILE_FAILED,  /* struct file_failure */
    FILE_TROUBLE, /* struct file_failure: what could not be read */
    FILE_EVENT,   /* struct file_event */

    /* Numbers never change: a file worker may be older than the daemon. */
    FILE_TOOL,   /* daemon to worker; u32 enum worker_tool */
    FILE_RESULT, /* worker to daemon; struct tool_outcome */
    FILE_HUB,    /* daemon to worker; struct file_request, of which nothing counts */

    FILE_MESSAGE_TYPES
};

enum file_flag {
    FILE_FOLLOW = 1 << 0,     /* stat: of what a link points to */
    FILE_PARENTS = 1 << 1,    /* missing directories above are made; mkdir: one that is there is
                                 fine */
    FILE_REPLACE = 1 << 2,    /* move: what has the new name goes */
    FILE_RECURSIVE = 1 << 3,  /* remove, watch: with all below */
    FILE_MISSING_OK = 1 << 4, /* remove */
    FILE_ATOMIC = 1 << 5, /* write: nobody sees half of it, and what was there stays until then */
    FILE_EXCLUSIVE = 1 << 6,   /* write: there must be nothing yet */
    FILE_APPEND = 1 << 7,      /* write: behind what is there */
    FILE_AT_OFFSET = 1 << 8,   /* write: over what is there, which else is cut off first */
    FILE_HAS_MODE = 1 << 9,    /* write, mkdir: `mode` counts, also for what is there */
    FILE_KEEP_OWNER = 1 << 10, /* push */
    FILE_GIVE = 1 << 11,      /* with the rights of root; what is made, or written, is the user's */
    FILE_DETAILS = 1 << 12,   /* entries of the answer have their details */
    FILE_HAS_META = 1 << 13,  /* write: `meta` takes the place of what the file has */
    FILE_FROM_HOME = 1 << 14, /* paths begin at the user's home, and are told from the root */
    FILE_ALL_FLAGS = (1 << 15) - 1,
};

struct file_request {
    enum file_message_type type;
    uint32_t flags;
    uint32_t mode;
    uint32_t depth;          /* list: 0 is 1 */
    uint32_t limit;          /* list: entries */
    uint64_t offset, length; /* read: 0 is all; write: where */
    const char *path;
    const char *to;    /* move */
    const char *after; /* list: what is behind this path, from the directory listed; "": all */
    const char *user;  /* whose rights and files: a name or number; "": root */
    const char *meta;  /* with FILE_HAS_META: names and values in turn, each with its NUL */
    size_t meta_len;
};

struct file_failure {
    uint32_t errnum; /* ESRCH: there is no such user */
    const char *path;
    const char *why; /* "": what errnum says */
};

enum file_event_kind {
    FILE_EVENT_NONE,
    FILE_EVENT_CREATE,
    FILE_EVENT_WRITE,
    FILE_EVENT_REMOVE,
    FILE_EVENT_RENAME, /* it had this name; what it is called now is told as created */
    FILE_EVENT_CHMOD,
    FILE_EVENT_OVERFLOW, /* events were lost */
    FILE_EVENT_KINDS
};

struct file_event {
    enum file_event_kind kind;
    const char *path; /* from the directory that is watched; "": itself */
};

/* Each appends one message: 0, -EMSGSIZE, -ENOBUFS or -ENOMEM. */
int file_put_request(struct buf *out, const struct file_request *request);
int file_put_entry(struct buf *out, const struct file_entry *entry);
int file_put_failure(struct buf *out, enum file_message_type type,
                     const struct file_failure *failure);
int file_put_event(struct buf *out, const struct file_event *event);
int file_put_number(struct buf *out, enum file_message_type type, uint32_t number);
int file_put_outcome(struct buf *out, const struct tool_outcome *outcome);

/* Fills in the header of a message with so many bytes of payload. */
void file_header(char header[FILE_HEADER_SIZE], enum file_message_type type, size_t size);

/* Where a receiver is. Zero at the beginning. */
struct file_parser {
    size_t left; /* bytes of a DATA that have yet to come */
};

struct file_piece {
    enum file_message_type type;
    const char *data; /* inside the bytes that were parsed */
    size_t len;
};

/* Takes what data starts with: a whole message, or some bytes of a DATA. How many bytes that were,
 * 0 when more are needed (at most FILE_HEADER_SIZE + FILE_WHOLE_MAX at once), or -EPROTO. */
ssize_t file_next(struct file_parser *parser, const void *data, size_t len, struct file_piece *ret);

/* Each returns whether the piece is exactly such a message. Texts point into it. */
bool file_get_request(const struct file_piece *piece, struct file_request *ret);
bool file_get_entry(const struct file_piece *piece, struct file_entry *ret);
bool file_get_failure(const struct file_piece *piece, struct file_failure *ret);
bool file_get_event(const struct file_piece *piece, struct file_event *ret);
bool file_get_number(const struct file_piece *piece, uint32_t *ret);
bool file_get_outcome(const struct file_piece *piece, struct tool_outcome *ret);
