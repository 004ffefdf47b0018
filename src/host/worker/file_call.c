// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/worker/file.h"
#include "host/worker/file_error.h"
#include "host/worker/lease.h"

enum {
    RECEIVE_SMALL = 32 * 1024,
    RECEIVE_LARGE = 256 * 1024,
    SEND_AT = 128 * 1024,
    ABORT_MS = 2000, /* how long a worker may take to undo what was begun */
};

_Static_assert(RECEIVE_LARGE >= FILE_HEADER_SIZE + FILE_WHOLE_MAX, "a message is received whole");

enum stage {
    STAGE_IDLE,      /* nothing was asked, or all was answered: the worker is as good as new */
    STAGE_SENDING,   /* more of the request is to come */
    STAGE_ANSWERING, /* answers are to come */
    STAGE_BROKEN,    /* the worker is of no use any more */
};

struct file_call {
    struct worker_lease lease;
    enum stage stage;
    enum file_message_type type; /* of the request */
    bool is_watching;            /* of WATCH: it has begun */
    bool is_torn;                /* a message was not sent to its end */
    uint32_t entries_left;       /* of LIST: that it may still tell of */
    int failed_errnum;
    char failed_path[ENTRY_PATH_MAX + 1];
    struct file_parser parser;
    struct buf in;
    size_t taken; /* of it */
    struct buf out;
};

/* Which answers a request may have, besides FAILED. */
static bool may_answer(const struct file_call *call, enum file_message_type answer)
{
    switch ((int)call->type) {
    case FILE_STAT:
    case FILE_MKDIR:
    case FILE_MOVE:
    case FILE_WRITE:
        return answer == FILE_ENTRY;
    case FILE_REMOVE:
    case FILE_PUSH:
        return answer == FILE_END;
    case FILE_LIST:
        return answer == FILE_ENTRY || answer == FILE_END;
    case FILE_READ:
        return answer == FILE_ENTRY || answer == FILE_DATA || answer == FILE_END;
    case FILE_PULL:
        return answer == FILE_ENTRY || answer == FILE_DATA || answer == FILE_TROUBLE ||
               answer == FILE_END;
    case FILE_WATCH:
        return answer == (call->is_watching ? FILE_EVENT : FILE_END);
    default:
        return false;
    }
}

static bool is_last(const struct file_call *call, enum file_message_type answer)
{
    if (answer == FILE_END)
        return call->type != FILE_WATCH;
    return answer == FILE_ENTRY && (call->type == FILE_STAT || call->type == FILE_MKDIR ||
                                    call->type == FILE_MOVE || call->type == FILE_WRITE);
}

static int open_call(struct sandbox *sandbox, const struct worker_request *wish,
                     struct file_call **ret, struct err *err)
{
    struct file_call *call = xcalloc(1, sizeof(*call));
    int r;

    call->in.max = FILE_HEADER_SIZE + FILE_WHOLE_MAX + RECEIVE_LARGE;
    call->out.max = SEND_AT + 2 * (FILE_HEADER_SIZE + FILE_WHOLE_MAX);
    r = lease_begin(&call->lease, sandbox, wish, err);
    if (r < 0) {
        file_call_close(call);
        return r;
    }
    *ret = call;
    return 0;
}

int file_call_open(struct sandbox *sandbox, int watch_fd, bool is_read_only, struct file_call **ret,
                   struct err *err)
{
    const struct worker_request wish = { .is_read_only = is_read_only, .watch_fd = watch_fd };

    return open_call(sandbox, &wish, ret, err);
}

int file_call_open_watch(struct sandbox *sandbox, int watch_fd, struct file_call **ret,
                         struct err *err)
{
    const struct worker_request wish = { .is_watch = true, .watch_fd = watch_fd };

    return open_call(sandbox, &wish, ret, err);
}

void file_call_set_watch_fd(struct file_call *call, int watch_fd)
{
    call->lease.watch_fd = watch_fd;
}

static int refuse_broken(struct file_call *call, struct err *err)
{
    call->stage = STAGE_BROKEN;
    return err_set(err, ERR_INTERNAL, "a file worker of sandbox '%s' does not answer as it should",
                   call->lease.sandbox->info.id);
}

static int refuse_dead(struct file_call *call, struct err *err)
{
    call->stage = STAGE_BROKEN;
    return lease_refuse(&call->lease, -EPIPE, err);
}

/* Sends all parts, which are changed. */
static int send_parts(struct file_call *call, struct iovec *parts, size_t count, struct err *err)
{
    int r;

    call->is_torn = true;
    r = lease_send(&call->lease, parts, count);
    if (r < 0)
        return r == -EPIPE ? refuse_dead(call, err) : lease_refuse(&call->lease, r, err);
    call->is_torn = false;
    return 0;
}

static int flush(struct file_call *call, struct err *err)
{
    struct iovec part = { .iov_base = call->out.data, .iov_len = call->out.len };
    int r = call->out.len > 0 ? send_parts(call, &part, 1, err) : 0;

    buf_clear(&call->out);
    return r;
}

int file_call_ask(struct file_call *call, const struct file_request *request, struct err *err)
{
    bool has_more = request->type == FILE_WRITE || request->type == FILE_PUSH;
    int r;

    if (request->path[0] == '\0' || (request->type == FILE_MOVE && request->to[0] == '\0'))
        return err_set(err, ERR_INVALID, "a path is empty");
    if (strlen(request->path) > ENTRY_PATH_MAX ||
        (request->to && strlen(request->to) > ENTRY_PATH_MAX))
        return err_set(err, ERR_INVALID, "a path is longer than %d bytes", ENTRY_PATH_MAX);
    if (request->user && strlen(request->user) > FILE_USER_MAX)
        return err_set(err, ERR_INVALID, "a user's name is longer than %d bytes", FILE_USER_MAX);
    if (request->meta_len > FILE_META_MAX)
        return err_set(err, ERR_INVALID, "a file's metadata is longer than %d bytes",
                       FILE_META_MAX);
    call->failed_errnum = 0;
    call->type = request->type;
    call->is_watching = false;
    call->entries_left = request->limit + (request->flags & FILE_FROM_HOME ? 1 : 0);
    r = file_put_request(&call->out, request);
    if (r < 0)
        return err_sys(err, r, "write a request to a file worker");
    call->stage = has_more ? STAGE_SENDING : STAGE_ANSWERING;
    return has_more ? 0 : flush(call, err);
}

/* --- answers --------------------------------------------------------------------------------- */

/* Small at first: most answers are, and memory is touched as it is used. */
static int receive(struct file_call *call, struct err *err)
{
    size_t room =
        call->type == FILE_READ || call->type == FILE_PULL ? RECEIVE_LARGE : RECEIVE_SMALL;
    int r;

    buf_consume(&call->in, call->taken);
    call->taken = 0;
    r = lease_receive(&call->lease, &call->in, room);
    if (r < 0)
        return r == -EPIPE ? refuse_dead(call, err) : lease_refuse(&call->lease, r, err);
    return 0;
}

static ssize_t piece_here(struct file_call *call, struct file_piece *ret)
{
    return file_next(&call->parser, call->in.data + call->taken, call->in.len - call->taken, ret);
}

bool file_call_has_next(const struct file_call *call)
{
    struct file_parser parser = call->parser;
    struct file_piece piece;

    return call->in.len > call->taken &&
           file_next(&parser, call->in.data + call->taken, call->in.len - call->taken, &piece) != 0;
}

static bool answer_get(const struct file_piece *piece, struct file_answer *ret)
{
    *ret = (struct file_answer){ .type = piece->type };
    switch ((int)piece->type) {
    case FILE_ENTRY:
        return file_get_entry(piece, &ret->entry);
    case FILE_DATA:
        ret->data = piece->data;
        ret->len = piece->len;
        return true;
    case FILE_TROUBLE:
        return file_get_failure(piece, &ret->trouble);
    case FILE_EVENT:
        return file_get_event(piece, &ret->event);
    case FILE_END:
        return file_get_number(piece, &ret->number);
    default:
        return false;
    }
}

int file_call_wait(struct file_call *call, int timeout_ms, struct err *err)
{
    int r;

    if (file_call_has_next(call))
        return 1;
    r = lease_wait(&call->lease, POLLIN, timeout_ms);
    if (r == -ETIMEDOUT)
        return 0;
    return r < 0 ? lease_refuse(&call->lease, r, err) : 1;
}

/* The request is over, and the worker ready for the next, unless it goes on reading this one. */
static int take_failure(struct file_call *call, const struct file_piece *piece, struct err *err)
{
    struct file_failure failure;

    if (!file_get_failure(piece, &failure))
        return refuse_broken(call, err);
    if (call->stage == STAGE_ANSWERING)
        call->stage = STAGE_IDLE;
    call->failed_errnum = (int)failure.errnum;
    (void)snprintf(call->failed_path, sizeof(call->failed_path), "%s", failure.path);
    return file_error_set(err, call->type, &failure);
}

int file_call_failed(const struct file_call *call, const char **ret_path)
{
    *ret_path = call->failed_path;
    return call->failed_errnum;
}

int file_call_next(struct file_call *call, struct file_answer *ret, struct err *err)
{
    struct file_piece piece;
    ssize_t n;
    int r;

    if (call->stage != STAGE_ANSWERING)
        return refuse_dead(call, err);
    while ((n = piece_here(call, &piece)) == 0) {
        r = receive(call, err);
        if (r < 0)
            return r;
    }
    if (n < 0)
        return refuse_broken(call, err);
    call->taken += (size_t)n;
    if (piece.type == FILE_FAILED)
        return take_failure(call, &piece, err);
    if (!may_answer(call, piece.type) || !answer_get(&piece, ret))
        return refuse_broken(call, err);
    if (call->type == FILE_LIST && piece.type == FILE_ENTRY && call->entries_left-- == 0)
        return refuse_broken(call, err);
    if (call->type == FILE_WATCH)
        call->is_watching = true;
    if (!is_last(call, piece.type))
        return 1;
    call->stage = call->taken == call->in.len ? STAGE_IDLE : STAGE_BROKEN;
    return 0;
}

/* --- what goes on behind a request ------------------------------------------------------------ */

static int put_end(struct file_call *call, struct err *err)
{
    int r = file_put_number(&call->out, FILE_END, 0);

    return r < 0 ? err_sys(err, r, "write to a file worker") : flush(call, err);
}

/* A worker that has failed reads on until it is told that this is all. */
static int take_early(struct file_call *call, struct err *err)
{
    struct file_piece piece;
    struct err ignored;
    ssize_t n;
    int r;

    while ((n = piece_here(call, &piece)) == 0) {
        r = receive(call, err);
        if (r < 0)
            return r;
    }
    if (n < 0 || piece.type != FILE_FAILED)
        return refuse_broken(call, err);
    call->taken += (size_t)n;
    buf_clear(&call->out);
    r = take_failure(call, &piece, err);
    if (call->stage == STAGE_SENDING)
        call->stage = put_end(call, &ignored) < 0 ? STAGE_BROKEN : STAGE_IDLE;
    return r;
}

/* Whether the worker has something to say already, which can only be that it has failed. */
static bool has_early(const struct file_call *call)
{
    char byte;

    return recv(call->lease.worker.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static int send_check(struct file_call *call, struct err *err)
{
    if (call->stage != STAGE_SENDING)
        return refuse_dead(call, err);
    return call->out.len >= SEND_AT && has_early(call) ? take_early(call, err) : 0;
}

int file_call_send_entry(struct file_call *call, const struct file_entry *entry, struct err *err)
{
    int r = send_check(call, err);

    if (r == 0 && call->out.len >= SEND_AT)
        r = flush(call, err);
    if (r < 0)
        return r;
    r = file_put_entry(&call->out, entry);
    return r < 0 ? err_set(err, ERR_INVALID, "an entry is too long") : 0;
}

/* Few bytes wait for others; many go as they are. */
int file_call_send_data(struct file_call *call, const void *data, size_t len, struct err *err)
{
    const char *bytes = data;
    int r = 0;

    while (r == 0 && len > 0) {
        size_t part = len < FILE_DATA_MAX ? len : FILE_DATA_MAX;
        char header[FILE_HEADER_SIZE];
        struct iovec parts[3];

        r = send_check(call, err);
        if (r < 0)
            return r;
        file_header(header, FILE_DATA, part);
        if (call->out.len + FILE_HEADER_SIZE + part <= SEND_AT) {
            if (buf_add(&call->out, header, sizeof(header)) < 0 ||
                buf_add(&call->out, bytes, part) < 0)
                return err_sys(err, -ENOMEM, "make room for data");
        } else {
            if (has_early(call))
                return take_early(call, err);
            parts[0] = (struct iovec){ call->out.data, call->out.len };
            parts[1] = (struct iovec){ header, sizeof(header) };
            parts[2] = (struct iovec){ (void *)(uintptr_t)bytes, part };
            r = send_parts(call, parts, ARRAY_SIZE(parts), err);
            buf_clear(&call->out);
        }
        bytes += part;
        len -= part;
    }
    return r;
}

int file_call_send_end(struct file_call *call, struct err *err)
{
    int r = send_check(call, err);

    if (r < 0)
        return r;
    r = put_end(call, err);
    if (r == 0)
        call->stage = STAGE_ANSWERING;
    return r;
}

/* Whether the worker has said, in one word and in time, how a write ended. */
static bool has_ended(struct file_call *call)
{
    struct file_piece piece;
    struct err ignored;
    ssize_t n;

    if (lease_wait(&call->lease, POLLIN, ABORT_MS) < 0 || receive(call, &ignored) < 0)
        return false;
    n = piece_here(call, &piece);
    return n > 0 && call->taken + (size_t)n == call->in.len &&
           (piece.type == FILE_FAILED || may_answer(call, piece.type));
}

/* What was written is to be undone, and what is all there is to be finished, which the worker does
 * if it is let. Nobody waits for it without end: it may be stopped, and read nothing. In the middle
 * of a message it can only be hung up on. */
static void abandon(struct file_call *call)
{
    bool is_write = call->type == FILE_WRITE || call->type == FILE_PUSH;
    char header[FILE_HEADER_SIZE];

    call->lease.watch_fd = -1;
    if (!is_write || (call->stage != STAGE_SENDING && call->stage != STAGE_ANSWERING))
        return;
    file_header(header, FILE_ABORT, 0);
    if (call->stage == STAGE_SENDING &&
        (call->is_torn || send(call->lease.worker.fd, header, sizeof(header),
                               MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof(header)))
        (void)shutdown(call->lease.worker.fd, SHUT_WR);
    call->stage = has_ended(call) ? STAGE_IDLE : STAGE_BROKEN;
}

void file_call_close(struct file_call *call)
{
    if (!call)
        return;
    if (call->lease.machine)
        abandon(call);
    lease_end(&call->lease, call->stage == STAGE_IDLE);
    buf_done(&call->in);
    buf_done(&call->out);
    free(call);
}
