/* A client stream of the test's own: it adds numbers up, and does not like 13. */
#pragma once

#include "api/route.h"
#include "base/err.h"
#include "base/json.h"
#include "http/upload.h"
#include "unit/http/client.h"

static atomic_int uploads_open, uploads_finished;

struct sum {
    struct upload upload;
    uint64_t total;
};

static int sum_message(struct upload *upload, const json_t *message, struct err *err)
{
    uint64_t number = 0;

    if (json_get_u64(message, "number", &number, err) < 0)
        return -EINVAL;
    if (number == 13)
        return err_set(err, ERR_BUSY, "13 is not liked");
    ((struct sum *)upload)->total += number;
    return 0;
}

static int sum_finish(struct upload *upload, struct buf *out, struct err *err)
{
    (void)err;
    CHECK(buf_printf(out, "{\"sum\":%d}", (int)((struct sum *)upload)->total) == 0);
    uploads_finished++;
    return 0;
}

static void sum_close(struct upload *upload)
{
    free(upload);
    uploads_open--;
}

static const struct upload_ops sum_ops = { .message = sum_message,
                                           .finish = sum_finish,
                                           .close = sum_close };

static int sum_begin(const struct call *call, const json_t *first, struct upload **ret,
                     struct err *err)
{
    struct sum *sum;

    CHECK(call->host && call->is_local);
    if (!json_object_get(first, "begin"))
        return err_set(err, ERR_INVALID, "begin is missing");
    sum = xcalloc(1, sizeof(*sum));
    sum->upload.ops = &sum_ops;
    *ret = &sum->upload;
    uploads_open++;
    return 0;
}

static const struct route sum_route = { "/test.SumService/Add", .upload = sum_begin };

/* It stands beside the table's methods. */
static const struct route *upload_route_find(const char *path)
{
    return strcmp(path, sum_route.path) == 0 ? &sum_route : table_route_find(path);
}

static size_t upload_route_index(const struct route *route)
{
    return route == &sum_route ? ROUTES_MAX - 1 : table_route_index(route);
}

static void message_put(struct buf *body, const char *text)
{
    CHECK(envelope_add(body, text, strlen(text)) == 0);
}

/* Sends the body in pieces of this size, and compares how the messages that come back begin. */
static void upload_gives(const struct buf *body, size_t piece, const char *wanted)
{
    static const char head[] = "POST /test.SumService/Add HTTP/1.1\r\nHost: holt\r\n"
                               "Content-Type: application/connect+json\r\nConnection: close\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n";
    cleanup_with(buf_done) struct buf reply = BUF_INIT(REPLY_BYTES_MAX),
                                      lines = BUF_INIT(REPLY_BYTES_MAX);
    int fd = local_connect();

    text_send(fd, head, strlen(head));
    for (size_t at = 0; at < body->len; at += piece) {
        size_t len = body->len - at < piece ? body->len - at : piece;
        char size[32];

        (void)snprintf(size, sizeof(size), "%zx\r\n", len);
        text_send(fd, size, strlen(size));
        text_send(fd, body->data + at, len);
        text_send(fd, "\r\n", 2);
    }
    text_send(fd, "0\r\n\r\n", 5);
    reply_read(fd, &reply);
    CHECK(close(fd) == 0);
    messages_list(&reply, &lines);
    CHECK(strncmp(lines.data, wanted, strlen(wanted)) == 0, "(%s)", lines.data);
    counter_wait(&uploads_open, 0);
}

static void an_upload_is_cut_wherever_it_is_cut(void)
{
    static const size_t pieces[] = { 1, 2, 3, 5, 7, 64, 100000 };
    cleanup_with(buf_done) struct buf body = BUF_INIT(65536);

    message_put(&body, "{\"begin\":true}");
    for (int i = 0; i < 20; i++)
        message_put(&body, "{\"number\":\"5\"}");
    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++)
        upload_gives(&body, pieces[i], "{\"sum\":100}\nend: {}\n");
    buf_clear(&body);
    message_put(&body, "{\"begin\":true}");
    upload_gives(&body, 100, "{\"sum\":0}\nend: {}\n");
}

static void an_upload_that_fails_says_why_and_is_closed(void)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(65536);
    int finished = uploads_finished;

    message_put(&body, "{\"begin\":true}");
    message_put(&body, "{\"number\":\"13\"}");
    for (int i = 0; i < 1000; i++)
        message_put(&body, "{\"number\":\"5\"}");
    upload_gives(&body, 1000,
                 "end: {\"error\":{\"code\":\"failed_precondition\",\"message\":\"13 is not "
                 "liked\"");
    buf_clear(&body);
    message_put(&body, "{}");
    upload_gives(&body, 1000,
                 "end: {\"error\":{\"code\":\"invalid_argument\",\"message\":\"begin is "
                 "missing\"");
    CHECK(uploads_finished == finished);
}

/* The client has announced many more bytes than it sends before the refusal. */
static void an_upload_that_fails_is_answered_before_its_end(void)
{
    static const char head[] = "POST /test.SumService/Add HTTP/1.1\r\nHost: holt\r\n"
                               "Content-Type: application/connect+json\r\n"
                               "Content-Length: 1000000000\r\n\r\n";
    cleanup_with(buf_done) struct buf reply = BUF_INIT(REPLY_BYTES_MAX),
                                      body = BUF_INIT(REPLY_BYTES_MAX);
    cleanup_free char *more = xcalloc(1, 1 << 20);
    int fd = local_connect();

    message_put(&body, "{\"begin\":true}");
    message_put(&body, "{\"number\":\"13\"}");
    text_send(fd, head, strlen(head));
    text_send(fd, body.data, body.len);
    text_send(fd, more, 1 << 20);
    reply_wait(fd, &reply, "13 is not liked");
    CHECK(strstr(reply.data, "Connection: close"));
    CHECK(close(fd) == 0);
    counter_wait(&uploads_open, 0);
}

static void an_upload_that_is_no_upload_is_refused(void)
{
    static const struct {
        const char *body;
        size_t len;
        const char *reason;
    } cases[] = {
        { "", 0, "the body has no message; it needs at least one" },
        { "\0\0\0\0\2{", 6, "the body ends inside a message" },
        { "\0\0\0\0", 4, "the body ends inside a message" },
        { "\0\0\0\0\0", 5, "a message is empty; the shortest one is {}" },
        { "\2\0\0\0\2{}", 7, "a request ends with its body, not with a message" },
        { "\1\0\0\0\2{}", 7, "the body is not made of enveloped messages" },
        { "{}", 2, "the body is not made of enveloped messages" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        cleanup_with(buf_done) struct buf body = BUF_INIT(64);
        cleanup_free char *wanted = xasprintf(
            "end: {\"error\":{\"code\":\"invalid_argument\",\"message\":\"%s\"", cases[i].reason);

        CHECK(buf_add(&body, cases[i].body, cases[i].len) == 0);
        upload_gives(&body, 3, wanted);
    }
}

/* Much more than any one message may hold, so nothing of it is kept. */
static void an_upload_has_no_end_of_its_own_but_its_messages_do(void)
{
    enum { MESSAGES = 40, PADDING = 1 << 20 };
    cleanup_with(buf_done) struct buf body = BUF_INIT(REPLY_BYTES_MAX);
    cleanup_free char *number = xasprintf("{\"number\":\"1\"%*s}", PADDING, "");

    message_put(&body, "{\"begin\":true}");
    for (int i = 0; i < MESSAGES; i++)
        message_put(&body, number);
    upload_gives(&body, 1 << 16, "{\"sum\":40}\nend: {}\n");
    CHECK(buf_add(&body, "\0\0\x30\0\1", 5) == 0); /* 3 MiB and a byte */
    upload_gives(&body, 1 << 16,
                 "end: {\"error\":{\"code\":\"resource_exhausted\",\"message\":\"a message is "
                 "larger than 3145728 bytes\"");
}

static void an_upload_whose_client_vanishes_is_closed_unfinished(void)
{
    static const char head[] = "POST /test.SumService/Add HTTP/1.1\r\nHost: holt\r\n"
                               "Content-Type: application/connect+json\r\n"
                               "Content-Length: 1000\r\n\r\n\0\0\0\0\016{\"begin\":true}";
    int finished = uploads_finished;
    int fd = local_connect();

    text_send(fd, head, sizeof(head) - 1);
    counter_wait(&uploads_open, 1);
    CHECK(close(fd) == 0);
    counter_wait(&uploads_open, 0);
    CHECK(uploads_finished == finished);
}
