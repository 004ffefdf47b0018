// SPDX-License-Identifier: Apache-2.0
#include "toolbox/worker.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/utf8.h"
#include "base/xalloc.h"
#include "host/sandbox/sandbox.h"
#include "host/worker/lease.h"
#include "wire/file.h"

enum {
    RECEIVE_SMALL = 16 * 1024,
    RECEIVE_LARGE = 256 * 1024,
    PARTS_MAX = 2 * (TOOL_PARAMS_MAX / FILE_DATA_MAX) + 2,
    VALUES_MAX = TOOL_PARAMS_MAX + 64,
};

/* Sends the request, the values in as many DATA messages as necessary, and END, in one call. */
static int send_job(const struct worker_lease *lease, enum worker_tool tool, struct buf *values)
{
    cleanup_with(buf_done) struct buf ends = BUF_INIT(64);
    char headers[PARTS_MAX / 2][FILE_HEADER_SIZE];
    struct iovec parts[PARTS_MAX];
    size_t count = 1, done = 0, first;

    if (file_put_number(&ends, FILE_TOOL, tool) < 0)
        return -ENOMEM;
    first = ends.len;
    if (file_put_number(&ends, FILE_END, 0) < 0)
        return -ENOMEM;
    parts[0] = (struct iovec){ ends.data, first };
    for (size_t i = 0; done < values->len; i++) {
        size_t left = values->len - done, part = left < FILE_DATA_MAX ? left : FILE_DATA_MAX;

        file_header(headers[i], FILE_DATA, part);
        parts[count++] = (struct iovec){ headers[i], FILE_HEADER_SIZE };
        parts[count++] = (struct iovec){ values->data + done, part };
        done += part;
    }
    parts[count++] = (struct iovec){ ends.data + first, ends.len - first };
    return lease_send(lease, parts, count);
}

/* Returns whether the path is absolute and has no "." or ".." components. */
static bool is_clean_path(const char *path)
{
    return path[0] == '/' && entry_path_is_below(path + 1);
}

static bool reply_take_event(const struct file_piece *piece, struct tool_worker_reply *reply)
{
    struct file_event event;

    if (reply->change_count == TOOL_EVENTS_MAX || !file_get_event(piece, &event) ||
        (event.kind != FILE_EVENT_CREATE && event.kind != FILE_EVENT_WRITE) ||
        !is_clean_path(event.path))
        return false;
    reply->changes[reply->change_count++] = (struct tool_worker_change){
        .kind = event.kind == FILE_EVENT_CREATE ? 'A' : 'M',
        .path = xstrdup(event.path),
    };
    return true;
}

/* Adds a message to the reply; returns false for one that is not allowed. Empty DATA is not: while
 * messages arrive, neither the deadline nor the client is checked, so their number must be bounded.
 */
static bool reply_take_piece(const struct file_piece *piece, struct tool_worker_reply *reply)
{
    if (piece->type == FILE_DATA)
        return piece->len > 0 && reply->change_count == 0 &&
               buf_add(&reply->content, piece->data, piece->len) == 0;
    if (piece->type == FILE_EVENT)
        return reply_take_event(piece, reply);
    return piece->type == FILE_RESULT && file_get_outcome(piece, &reply->outcome);
}

int tool_worker_parse(struct tool_worker_parser *parser, struct tool_worker_reply *reply)
{
    struct file_piece piece;
    ssize_t n;

    for (;;) {
        n = file_next(&parser->parser, parser->in.data + parser->taken,
                      parser->in.len - parser->taken, &piece);
        if (n < 0)
            return (int)n;
        if (n == 0) {
            buf_consume(&parser->in, parser->taken);
            parser->taken = 0;
            return 0;
        }
        parser->taken += (size_t)n;
        if (!reply_take_piece(&piece, reply))
            return -EPROTO;
        if (piece.type == FILE_RESULT)
            return parser->taken == parser->in.len ? 1 : -EPROTO;
    }
}

/* Replaces invalid UTF-8 in a text. */
static int reply_clean(struct tool_worker_reply *reply)
{
    struct buf *content = &reply->content;
    struct buf text = BUF_INIT(3 * (size_t)TOOL_CONTENT_MAX);
    long r;

    if (reply->outcome.flags & TOOL_IS_IMAGE ||
        utf8_valid(content->data, content->len) == content->len)
        return 0;
    r = utf8_add(&text, content->data, content->len);
    if (r < 0) {
        buf_done(&text);
        return (int)r;
    }
    buf_done(content);
    *content = text;
    return 0;
}

static int reply_receive(const struct worker_lease *lease, struct tool_worker_reply *reply)
{
    struct tool_worker_parser parser = {
        .in.max = FILE_HEADER_SIZE + FILE_WHOLE_MAX + RECEIVE_LARGE,
    };
    size_t room = RECEIVE_SMALL;
    int r = lease_wait(lease, POLLIN, -1);

    while (r == 0) {
        r = lease_receive(lease, &parser.in, room);
        if (r == 0)
            r = tool_worker_parse(&parser, reply);
        room = RECEIVE_LARGE;
    }
    buf_done(&parser.in);
    return r < 0 ? r : reply_clean(reply);
}

static int lease_fail(const struct worker_lease *lease, int r, struct err *err)
{
    if (r == -EPROTO)
        return err_set(err, ERR_INTERNAL, "a tool worker of sandbox '%s' sent a malformed reply",
                       sandbox_id(lease->sandbox));
    return lease_set_error(lease, r, err);
}

int tool_worker_run(struct sandbox *sandbox, const struct tool_worker_job *job,
                    struct tool_worker_reply *ret, struct err *err)
{
    const struct worker_request wish = { .is_of_tools = true,
                                         .is_read_only = job->is_read_only,
                                         .watch_fd = job->watch_fd,
                                         .deadline_ms = job->deadline_ms };
    cleanup_with(buf_done) struct buf values = BUF_INIT(VALUES_MAX);
    struct worker_lease lease;
    int r = tool_put_values(&values, job->values, job->count);

    ret->change_count = 0;
    ret->content = (struct buf)BUF_INIT(TOOL_CONTENT_MAX);
    if (r < 0)
        return err_set(err, ERR_INVALID, "the parameters are larger than %d MiB",
                       TOOL_PARAMS_MAX >> 20);
    r = lease_begin(&lease, sandbox, &wish, err);
    if (r == 0) {
        r = send_job(&lease, job->tool, &values);
        if (r == 0)
            r = reply_receive(&lease, ret);
        if (r < 0)
            r = lease_fail(&lease, r, err);
    }
    lease_end(&lease, r == 0);
    if (r < 0)
        tool_worker_reply_done(ret);
    return r;
}

void tool_worker_reply_done(struct tool_worker_reply *reply)
{
    for (size_t i = 0; i < reply->change_count; i++)
        free(reply->changes[i].path);
    reply->change_count = 0;
    buf_done(&reply->content);
}
