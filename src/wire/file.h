/* The protocol between the daemon and a file worker, which executes requests on files of a sandbox
 * one after another (guest/files/file.c). Both send messages over one byte stream, little-endian
 * and without padding:
 *
 * - u32 size: bytes of payload
 * - u32 type: enum file_message_type
 * - the payload
 *
 * A worker sends HELLO first. Then the daemon sends a request, the worker answers it, and so on:
 *
 *   STAT, MKDIR, MOVE   ENTRY
 *   REMOVE              END
 *   LIST                ENTRY..., END (number: 1 if there is more); with FILE_FROM_HOME the first
 *                       ENTRY is the directory itself
 *   READ                ENTRY, DATA..., END
 *   PULL                (ENTRY, DATA... or TROUBLE)..., END
 *   WRITE               the daemon continues with DATA..., END; then ENTRY
 *   PUSH                the daemon continues with (ENTRY, DATA...)..., END; then END
 *   WATCH               END once it watches, then EVENT... until the daemon hangs up
 *   HUB                 END; from then on the daemon sends single bytes, each with a socket that
 *                       carries one WATCH request and its reply until it is closed
 *
 * A tool worker (src/tools) sends HELLO too, but accepts only one request, which never fails:
 *
 *   TOOL                the daemon continues with DATA..., END: the values (wire/tool.h); then
 *                       DATA..., EVENT..., RESULT: the content, the changes, the outcome
 *
 * Instead of any of these replies, and after any ENTRY, DATA or TROUBLE, the worker may send
 * FAILED, which ends the request; for WRITE and PUSH it still reads until END. The daemon may send
 * ABORT instead of END: the worker undoes what was begun and replies FAILED. The boundaries
 * between DATA messages have no meaning. Paths are bytes; relative ones start at FILE_WORKSPACE.
 *
 * The protocol is independent of its transport, which is a socket that holt-init receives with the
 * order to start a worker. The daemon trusts a worker no more than its sandbox, so any malformed
 * message ends the worker. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/files/file_entry.h"

struct buf;
struct tool_outcome;

#define FILE_WORKSPACE "/workspace"

/* Prefix of the extended attributes that hold client-set metadata. */
#define FILE_META_PREFIX "user.e2b."

enum {
    FILE_HEADER_SIZE = 8,
    FILE_DATA_MAX = 256 * 1024,
    FILE_WHOLE_MAX = 32 * 1024, /* any other payload */
    FILE_USER_MAX = 64,
    FILE_WHY_MAX = 120,
    FILE_META_MAX = 8 * 1024, /* names and values of one file together */
    FILE_WATCHES_MAX = 8192,  /* directories per watch request */
    FILE_HUB_MAX = 256,       /* watch requests per hub */
};

enum file_message_type {
    FILE_NONE,

    /* daemon to worker */
    FILE_STAT, /* the first ten and HUB: struct file_request */
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
    FILE_HELLO,   /* u32 errno: 0, or why the worker could not start */
    FILE_FAILED,  /* struct file_failure */
    FILE_TROUBLE, /* struct file_failure: a path that could not be read */
    FILE_EVENT,   /* struct file_event */

    /* Numbers never change: a file worker may be older than the daemon. */
    FILE_TOOL,   /* daemon to worker; u32 enum worker_tool */
    FILE_RESULT, /* worker to daemon; struct tool_outcome */
    FILE_HUB,    /* daemon to worker; struct file_request, whose fields are ignored */

    FILE_MESSAGE_TYPES
};

enum file_flag {
    FILE_FOLLOW = 1 << 0, /* stat: the target of a symbolic link */
    FILE_PARENTS =
        1
        << 1, /* creates missing parent directories; mkdir: an existing directory is not an error */
    FILE_REPLACE = 1 << 2,    /* move: replaces an existing target */
    FILE_RECURSIVE = 1 << 3,  /* remove, watch: with all below */
    FILE_MISSING_OK = 1 << 4, /* remove */
    FILE_ATOMIC = 1 << 5,     /* write: readers see either the old or the complete new contents */
    FILE_EXCLUSIVE = 1 << 6,  /* write: the file must not exist */
    FILE_APPEND = 1 << 7,     /* write: after the existing contents */
    FILE_AT_OFFSET = 1 << 8,  /* write: over the existing contents, which are truncated otherwise */
    FILE_HAS_MODE = 1 << 9,   /* write, mkdir: sets `mode`, also of an existing file */
    FILE_KEEP_OWNER = 1 << 10, /* push */
    FILE_GIVE = 1 << 11, /* with the rights of root; created or written files belong to the user */
    FILE_DETAILS = 1 << 12,  /* entries of the reply have details */
    FILE_HAS_META = 1 << 13, /* write: `meta` replaces the file's metadata */
    FILE_FROM_HOME =
        1 << 14, /* paths are relative to the user's home; replies have absolute ones */
    FILE_IF_MATCH =
        1 << 15, /* atomic write: only over the file with the tag in `to`; "": over none */
    FILE_ALL_FLAGS = (1 << 16) - 1,
};

struct file_request {
    enum file_message_type type;
    uint32_t flags;
    uint32_t mode;
    uint32_t depth;          /* list: 0 means 1 */
    uint32_t limit;          /* list: maximum number of entries */
    uint64_t offset, length; /* read: 0 means all; write: position */
    const char *path;
    const char *to; /* move; write with FILE_IF_MATCH */
    const char
        *after; /* list: only what follows this path, relative to the directory listed; "": all */
    const char *user; /* user whose rights apply: name or number; "": root */
    const char *meta; /* with FILE_HAS_META: names and values alternating, each with its NUL */
    size_t meta_len;
};

struct file_failure {
    uint32_t errnum; /* ESRCH: no such user */
    const char *path;
    const char *why; /* "": see errnum */
};

enum file_event_kind {
    FILE_EVENT_NONE,
    FILE_EVENT_CREATE,
    FILE_EVENT_WRITE,
    FILE_EVENT_REMOVE,
    FILE_EVENT_RENAME, /* old name; the new name is reported as created */
    FILE_EVENT_CHMOD,
    FILE_EVENT_OVERFLOW, /* events were lost */
    FILE_EVENT_KINDS
};

struct file_event {
    enum file_event_kind kind;
    const char *path; /* relative to the watched directory; "": the directory itself */
};

/* Append one message. Return 0, -EMSGSIZE, -ENOBUFS or -ENOMEM. */
int file_put_request(struct buf *out, const struct file_request *request);
int file_put_entry(struct buf *out, const struct file_entry *entry);
int file_put_failure(struct buf *out, enum file_message_type type,
                     const struct file_failure *failure);
int file_put_event(struct buf *out, const struct file_event *event);
int file_put_number(struct buf *out, enum file_message_type type, uint32_t number);
int file_put_outcome(struct buf *out, const struct tool_outcome *outcome);

/* Fills in the header of a message with a payload of size bytes. */
void file_header(char header[FILE_HEADER_SIZE], enum file_message_type type, size_t size);

/* State of a receiver. Zero-initialised. */
struct file_parser {
    size_t left; /* bytes of the current DATA that are still to come */
};

struct file_piece {
    enum file_message_type type;
    const char *data; /* points into the parsed bytes */
    size_t len;
};

/* Parses the start of data: a whole message, or some bytes of a DATA. Returns the bytes used, 0 if
 * more are needed (at most FILE_HEADER_SIZE + FILE_WHOLE_MAX at once), or -EPROTO. */
ssize_t file_next(struct file_parser *parser, const void *data, size_t len, struct file_piece *ret);

/* Parse a piece. Return whether it is exactly such a message. Strings point into it. */
bool file_get_request(const struct file_piece *piece, struct file_request *ret);
bool file_get_entry(const struct file_piece *piece, struct file_entry *ret);
bool file_get_failure(const struct file_piece *piece, struct file_failure *ret);
bool file_get_event(const struct file_piece *piece, struct file_event *ret);
bool file_get_number(const struct file_piece *piece, uint32_t *ret);
bool file_get_outcome(const struct file_piece *piece, struct tool_outcome *ret);
