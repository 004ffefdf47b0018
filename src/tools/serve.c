// SPDX-License-Identifier: Apache-2.0
#include "tools/serve.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "tools/tool.h"
#include "wire/file.h"

enum {
    RECEIVE_CHUNK = 256 * 1024,
    KEEP_MAX = 1024 * 1024, /* bytes of a buffer that is kept for the next request */
    CHANGED_MAX = TOOL_EVENTS_MAX * 8192,
    PARTS_MAX = 2 * (TOOL_CONTENT_MAX / FILE_DATA_MAX) + 3,
};

/* The types of the parameters, as letters of type_letters. */
static const struct {
    tool_fn *run;
    const char *types;
} tools[WORKER_TOOLS] = {
    [WORKER_READ_FILE] = { tool_read_file, "tnn" },
    [WORKER_WRITE_FILE] = { tool_write_file, "ttf" },
    [WORKER_EDIT_FILE] = { tool_edit_file, "tttf" },
    [WORKER_MULTI_EDIT] = { tool_multi_edit, "te" },
    [WORKER_LIST_DIR] = { tool_list_dir, "tnn" },
    [WORKER_GREP] = { tool_grep, "ttttffcnnnff" },
    [WORKER_GLOB] = { tool_glob, "ttncff" },
};

static const char type_letters[TOOL_TYPES] = {
    [TOOL_TEXT] = 't',   [TOOL_NUMBER] = 'n', [TOOL_FLAG] = 'f',
    [TOOL_CHOICE] = 'c', [TOOL_TEXTS] = 'l',  [TOOL_EDITS] = 'e',
};

struct server {
    int fd;
    struct file_parser parser;
    struct buf in;
    size_t taken;      /* bytes of `in` that are parsed */
    struct buf values; /* encoded */
    struct tool_reply reply;
    struct buf ends; /* messages besides the content */
};

static int server_next_piece(struct server *server, struct file_piece *ret)
{
    for (;;) {
        struct buf *in = &server->in;
        ssize_t n =
            file_next(&server->parser, in->data + server->taken, in->len - server->taken, ret);

        if (n < 0)
            return (int)n;
        if (n > 0) {
            server->taken += (size_t)n;
            return 0;
        }
        buf_consume(in, server->taken);
        server->taken = 0;
        if (buf_reserve(in, RECEIVE_CHUNK) < 0)
            return -ENOMEM;
        /* A read by the daemon wakes a thread in recv, but not one in poll. */
        (void)poll(&(struct pollfd){ .fd = server->fd, .events = POLLIN }, 1, -1);
        n = recv(server->fd, in->data + in->len, RECEIVE_CHUNK, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EPIPE;
        in->len += (size_t)n;
    }
}

static int send_parts(int fd, struct iovec *parts, size_t count)
{
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = count };

    while (message.msg_iovlen > 0) {
        ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        iov_advance(&message, (size_t)n);
    }
    return 0;
}

/* Sends the reply in one call: the content in DATA messages, changes, the result. */
static int server_send_reply(struct server *server)
{
    struct tool_reply *reply = &server->reply;
    static struct iovec parts[PARTS_MAX];
    static char headers[PARTS_MAX / 2][FILE_HEADER_SIZE];
    size_t count = 0, done = 0;

    for (size_t i = 0; done < reply->content.len; i++) {
        size_t left = reply->content.len - done, part = left < FILE_DATA_MAX ? left : FILE_DATA_MAX;

        file_header(headers[i], FILE_DATA, part);
        parts[count++] = (struct iovec){ headers[i], FILE_HEADER_SIZE };
        parts[count++] = (struct iovec){ reply->content.data + done, part };
        done += part;
    }
    parts[count++] = (struct iovec){ reply->changed.data, reply->changed.len };
    buf_clear(&server->ends);
    if (file_put_outcome(&server->ends, &reply->outcome) < 0)
        return -ENOMEM;
    parts[count++] = (struct iovec){ server->ends.data, server->ends.len };
    return send_parts(server->fd, parts, count);
}

static bool values_fit(enum worker_tool tool, const struct tool_values *values)
{
    const char *types = tools[tool].types;

    if (strlen(types) != values->count)
        return false;
    for (size_t i = 0; i < values->count; i++)
        if (type_letters[values->at[i].type] != types[i])
            return false;
    return true;
}

static int server_receive_request(struct server *server, uint32_t *ret_tool)
{
    struct file_piece piece;
    int r = server_next_piece(server, &piece);

    if (r < 0)
        return r;
    if (piece.type != FILE_TOOL || !file_get_number(&piece, ret_tool) || *ret_tool >= WORKER_TOOLS)
        return -EPROTO;
    buf_clear(&server->values);
    do {
        r = server_next_piece(server, &piece);
        if (r == 0 && piece.type == FILE_DATA)
            r = buf_add(&server->values, piece.data, piece.len);
        else if (r == 0 && piece.type != FILE_END)
            r = -EPROTO;
    } while (r == 0 && piece.type != FILE_END);
    return r;
}

/* Empties a buffer, and frees it if it is large. */
static void buf_recycle(struct buf *buf)
{
    if (buf->cap > KEEP_MAX)
        buf_done(buf);
    buf_clear(buf);
}

static int server_serve_one(struct server *server)
{
    struct tool_values values = { .count = 0 };
    uint32_t tool;
    int r = server_receive_request(server, &tool);

    if (r == 0)
        r = tool_get_values(server->values.data, server->values.len, &values);
    if (r < 0)
        return r;
    if (values_fit((enum worker_tool)tool, &values)) {
        server->reply.outcome = (struct tool_outcome){ .flags = 0 };
        tools[tool].run(&values, &server->reply);
        r = server_send_reply(server);
    } else {
        r = -EPROTO;
    }
    tool_values_done(&values);
    buf_recycle(&server->values);
    buf_recycle(&server->reply.content);
    buf_recycle(&server->reply.changed);
    return r;
}

static void server_done(struct server *server)
{
    buf_done(&server->in);
    buf_done(&server->values);
    buf_done(&server->reply.content);
    buf_done(&server->reply.changed);
    buf_done(&server->ends);
}

int tools_serve(int fd)
{
    cleanup_with(server_done) struct server server = {
        .fd = fd,
        .in.max = FILE_HEADER_SIZE + FILE_WHOLE_MAX + RECEIVE_CHUNK,
        .values.max = TOOL_PARAMS_MAX,
        .reply = { .content.max = TOOL_CONTENT_MAX, .changed.max = CHANGED_MAX },
        .ends.max = FILE_HEADER_SIZE + FILE_WHOLE_MAX,
    };
    struct iovec hello;
    int r = file_put_number(&server.ends, FILE_HELLO, 0);

    hello = (struct iovec){ server.ends.data, server.ends.len };
    if (r == 0)
        r = send_parts(fd, &hello, 1);
    while (r == 0)
        r = server_serve_one(&server);
    return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}
