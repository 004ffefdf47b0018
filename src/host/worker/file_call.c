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
    ABORT_MS = 2000, /* time for a worker to undo a partial write */
};

_Static_assert(RECEIVE_LARGE >= FILE_HEADER_SIZE + FILE_WHOLE_MAX, "a message is received whole");

enum stage {
    STAGE_IDLE,      /* no request, or all answers were received: the worker can be reused */
    STAGE_SENDING,   /* the request is incomplete */
    STAGE_ANSWERING, /* answers are outstanding */
    STAGE_BROKEN,    /* the worker cannot be reused */
};

struct file_call {
    struct worker_lease lease;
    enum stage stage;
    enum file_message_type type; /* of the request */
    bool is_watching;            /* of WATCH: the first answer has come */
    bool is_torn;                /* a message was sent in part */
    uint32_t entries_left;       /* of LIST: entries that may still come */
    int failed_errnum;
    char failed_path[ENTRY_PATH_MAX + 1];
    struct file_parser parser;
    struct buf in;
    size_t taken; /* bytes of `in` that are parsed */
    struct buf out;
};

/* Returns whether a request may have this answer, besides FAILED. */
static bool answer_is_allowed(const struct file_call *call, enum file_message_type answer)
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

static bool answer_is_last(const struct file_call *call, enum file_message_type answer)
{
    if (answer == FILE_END)
        return call->type != FILE_WATCH;
    return answer == FILE_ENTRY && (call->type == FILE_STAT || call->type == FILE_MKDIR ||
                                    call->type == FILE_MOVE || call->type == FILE_WRITE);
}

static int file_call_open_lease(struct sandbox *sandbox, const struct worker_request *request,
                                struct file_call **ret, struct err *err)
{
    struct file_call *call = xcalloc(1, sizeof(*call));
    int r;

    call->in.max = FILE_HEADER_SIZE + FILE_WHOLE_MAX + RECEIVE_LARGE;
    call->out.max = SEND_AT + 2 * (FILE_HEADER_SIZE + FILE_WHOLE_MAX);
    r = lease_begin(&call->lease, sandbox, request, err);
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
    const struct worker_request request = { .is_read_only = is_read_only, .watch_fd = watch_fd };

    return file_call_open_lease(sandbox, &request, ret, err);
}

int file_call_open_watch(struct sandbox *sandbox, int watch_fd, struct file_call **ret,
                         struct err *err)
{
    const struct worker_request request = { .is_watch = true, .watch_fd = watch_fd };

    return file_call_open_lease(sandbox, &request, ret, err);
}

void file_call_set_watch_fd(struct file_call *call, int watch_fd)
{
    call->lease.watch_fd = watch_fd;
}

static int file_call_set_broken(struct file_call *call, struct err *err)
{
    call->stage = STAGE_BROKEN;
    return err_set(err, ERR_INTERNAL, "a file worker of sandbox '%s' violates the protocol",
                   call->lease.sandbox->info.id);
}

static int file_call_set_dead(struct file_call *call, struct err *err)
{
    call->stage = STAGE_BROKEN;
    return lease_set_error(&call->lease, -EPIPE, err);
}

/* Sends all parts, and modifies them. */
static int file_call_send_parts(struct file_call *call, struct iovec *parts, size_t count,
                                struct err *err)
{
    int r;

    call->is_torn = true;
    r = lease_send(&call->lease, parts, count);
    if (r < 0)
        return r == -EPIPE ? file_call_set_dead(call, err) : lease_set_error(&call->lease, r, err);
    call->is_torn = false;
    return 0;
}

static int file_call_flush(struct file_call *call, struct err *err)
{
    struct iovec part = { .iov_base = call->out.data, .iov_len = call->out.len };
    int r = call->out.len > 0 ? file_call_send_parts(call, &part, 1, err) : 0;

    buf_clear(&call->out);
    return r;
}

int file_call_send_request(struct file_call *call, const struct file_request *request,
                           struct err *err)
{
    bool has_more = request->type == FILE_WRITE || request->type == FILE_PUSH;
    int r;

    if (request->path[0] == '\0' || (request->type == FILE_MOVE && request->to[0] == '\0'))
        return err_set(err, ERR_INVALID, "empty path");
    if (strlen(request->path) > ENTRY_PATH_MAX ||
        (request->to && strlen(request->to) > ENTRY_PATH_MAX))
        return err_set(err, ERR_INVALID, "path too long (at most %d bytes)", ENTRY_PATH_MAX);
    if (request->user && strlen(request->user) > FILE_USER_MAX)
        return err_set(err, ERR_INVALID, "user name too long (at most %d bytes)", FILE_USER_MAX);
    if (request->meta_len > FILE_META_MAX)
        return err_set(err, ERR_INVALID, "metadata of the file too long (at most %d bytes)",
                       FILE_META_MAX);
    call->failed_errnum = 0;
    call->type = request->type;
    call->is_watching = false;
    call->entries_left = request->limit + (request->flags & FILE_FROM_HOME ? 1 : 0);
    r = file_put_request(&call->out, request);
    if (r < 0)
        return err_sys(err, r, "write a request to a file worker");
    call->stage = has_more ? STAGE_SENDING : STAGE_ANSWERING;
    return has_more ? 0 : file_call_flush(call, err);
}

/* --- answers --- */

/* The buffer starts small: most answers are short, and memory is used as it is touched. */
static int file_call_receive(struct file_call *call, struct err *err)
{
    size_t room =
        call->type == FILE_READ || call->type == FILE_PULL ? RECEIVE_LARGE : RECEIVE_SMALL;
    int r;

    buf_consume(&call->in, call->taken);
    call->taken = 0;
    r = lease_receive(&call->lease, &call->in, room);
    if (r < 0)
        return r == -EPIPE ? file_call_set_dead(call, err) : lease_set_error(&call->lease, r, err);
    return 0;
}

static ssize_t file_call_parse(struct file_call *call, struct file_piece *ret)
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
    return r < 0 ? lease_set_error(&call->lease, r, err) : 1;
}

int file_call_wait_arrival(const struct file_call *call)
{
    return lease_wait(&call->lease, POLLIN, -1);
}

/* Ends the request; the worker is then ready for the next one, unless it still reads this one. */
static int file_call_on_failure(struct file_call *call, const struct file_piece *piece,
                                struct err *err)
{
    struct file_failure failure;

    if (!file_get_failure(piece, &failure))
        return file_call_set_broken(call, err);
    if (call->stage == STAGE_ANSWERING)
        call->stage = STAGE_IDLE;
    call->failed_errnum = (int)failure.errnum;
    (void)snprintf(call->failed_path, sizeof(call->failed_path), "%s", failure.path);
    return file_error_set(err, call->type, &failure);
}

int file_call_failure(const struct file_call *call, const char **ret_path)
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
        return file_call_set_dead(call, err);
    while ((n = file_call_parse(call, &piece)) == 0) {
        r = file_call_receive(call, err);
        if (r < 0)
            return r;
    }
    if (n < 0)
        return file_call_set_broken(call, err);
    call->taken += (size_t)n;
    if (piece.type == FILE_FAILED)
        return file_call_on_failure(call, &piece, err);
    if (!answer_is_allowed(call, piece.type) || !answer_get(&piece, ret))
        return file_call_set_broken(call, err);
    if (call->type == FILE_LIST && piece.type == FILE_ENTRY && call->entries_left-- == 0)
        return file_call_set_broken(call, err);
    if (call->type == FILE_WATCH)
        call->is_watching = true;
    if (!answer_is_last(call, piece.type))
        return 1;
    call->stage = call->taken == call->in.len ? STAGE_IDLE : STAGE_BROKEN;
    return 0;
}

/* --- data behind a request --- */

static int file_call_put_end(struct file_call *call, struct err *err)
{
    int r = file_put_number(&call->out, FILE_END, 0);

    return r < 0 ? err_sys(err, r, "write to a file worker") : file_call_flush(call, err);
}

/* Receives a failure that came while we were sending. The worker reads on until END. */
static int file_call_receive_early(struct file_call *call, struct err *err)
{
    struct file_piece piece;
    struct err ignored;
    ssize_t n;
    int r;

    while ((n = file_call_parse(call, &piece)) == 0) {
        r = file_call_receive(call, err);
        if (r < 0)
            return r;
    }
    if (n < 0 || piece.type != FILE_FAILED)
        return file_call_set_broken(call, err);
    call->taken += (size_t)n;
    buf_clear(&call->out);
    r = file_call_on_failure(call, &piece, err);
    if (call->stage == STAGE_SENDING)
        call->stage = file_call_put_end(call, &ignored) < 0 ? STAGE_BROKEN : STAGE_IDLE;
    return r;
}

/* Returns whether the worker has sent something already; that can only be a failure. */
static bool file_call_has_early(const struct file_call *call)
{
    char byte;

    return recv(call->lease.worker.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static int file_call_check_sending(struct file_call *call, struct err *err)
{
    if (call->stage != STAGE_SENDING)
        return file_call_set_dead(call, err);
    return call->out.len >= SEND_AT && file_call_has_early(call)
               ? file_call_receive_early(call, err)
               : 0;
}

int file_call_send_entry(struct file_call *call, const struct file_entry *entry, struct err *err)
{
    int r = file_call_check_sending(call, err);

    if (r == 0 && call->out.len >= SEND_AT)
        r = file_call_flush(call, err);
    if (r < 0)
        return r;
    r = file_put_entry(&call->out, entry);
    return r < 0 ? err_set(err, ERR_INVALID, "entry too long") : 0;
}

/* Small pieces are collected; large ones are sent without a copy. */
int file_call_send_data(struct file_call *call, const void *data, size_t len, struct err *err)
{
    const char *bytes = data;
    int r = 0;

    while (r == 0 && len > 0) {
        size_t part = len < FILE_DATA_MAX ? len : FILE_DATA_MAX;
        char header[FILE_HEADER_SIZE];
        struct iovec parts[3];

        r = file_call_check_sending(call, err);
        if (r < 0)
            return r;
        file_header(header, FILE_DATA, part);
        if (call->out.len + FILE_HEADER_SIZE + part <= SEND_AT) {
            if (buf_add(&call->out, header, sizeof(header)) < 0 ||
                buf_add(&call->out, bytes, part) < 0)
                return err_sys(err, -ENOMEM, "allocate memory for data");
        } else {
            if (file_call_has_early(call))
                return file_call_receive_early(call, err);
            parts[0] = (struct iovec){ call->out.data, call->out.len };
            parts[1] = (struct iovec){ header, sizeof(header) };
            parts[2] = (struct iovec){ (void *)(uintptr_t)bytes, part };
            r = file_call_send_parts(call, parts, ARRAY_SIZE(parts), err);
            buf_clear(&call->out);
        }
        bytes += part;
        len -= part;
    }
    return r;
}

int file_call_send_end(struct file_call *call, struct err *err)
{
    int r = file_call_check_sending(call, err);

    if (r < 0)
        return r;
    r = file_call_put_end(call, err);
    if (r == 0)
        call->stage = STAGE_ANSWERING;
    return r;
}

/* Returns whether the worker has reported the outcome of a write in time, in one message. */
static bool file_call_wait_ended(struct file_call *call)
{
    struct file_piece piece;
    struct err ignored;
    ssize_t n;

    if (lease_wait(&call->lease, POLLIN, ABORT_MS) < 0 || file_call_receive(call, &ignored) < 0)
        return false;
    n = file_call_parse(call, &piece);
    return n > 0 && call->taken + (size_t)n == call->in.len &&
           (piece.type == FILE_FAILED || answer_is_allowed(call, piece.type));
}

/* Lets the worker undo a partial write, or finish a complete one, but does not wait for longer than
 * ABORT_MS: a stopped worker reads nothing. After a partial message the socket can only be shut
 * down. */
static void file_call_abandon(struct file_call *call)
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
    call->stage = file_call_wait_ended(call) ? STAGE_IDLE : STAGE_BROKEN;
}

void file_call_close(struct file_call *call)
{
    if (!call)
        return;
    if (call->lease.machine)
        file_call_abandon(call);
    lease_end(&call->lease, call->stage == STAGE_IDLE);
    buf_done(&call->in);
    buf_done(&call->out);
    free(call);
}
