// SPDX-License-Identifier: Apache-2.0
/* libholt against a daemon that says, connection by connection, what the test tells it to. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "check.h"
#include "client/transport/address.h"
#include "holt.h"

enum { REQUEST_SIZE = 16 * 1024 };

/* Answers one request; without data it hangs up, and the next connection continues after it. */
struct reply {
    const char *data;
    size_t len;
    bool is_rest; /* no request comes before it, but the test's word */
};

#define REPLY(text)                                                                                \
    {                                                                                              \
        (text), sizeof(text) - 1, false                                                            \
    }

struct script {
    const struct reply *replies;
    size_t count;
    int listen_fd;
    pthread_t thread;
    sem_t word;
    char host[128];
    char path[108];
};

static void *play(void *argument)
{
    struct script *script = argument;
    cleanup_close int fd = accept4(script->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    char request[REQUEST_SIZE];

    for (size_t i = 0; i < script->count; i++) {
        const struct reply *reply = &script->replies[i];

        if (!reply->data) {
            fd = fd_close(fd);
            fd = accept4(script->listen_fd, NULL, NULL, SOCK_CLOEXEC);
            continue;
        }
        if (reply->is_rest)
            CHECK(sem_wait(&script->word) == 0);
        else
            CHECK(recv(fd, request, sizeof(request), 0) > 0);
        CHECK(send(fd, reply->data, reply->len, MSG_NOSIGNAL) == (ssize_t)reply->len);
    }
    /* Until the client goes. */
    (void)recv(fd, request, sizeof(request), 0);
    return NULL;
}

static void script_start(struct script *script, const struct reply *replies, size_t count)
{
    static int number;
    struct sockaddr_un name = { .sun_family = AF_UNIX };

    *script = (struct script){ .replies = replies, .count = count };
    (void)snprintf(script->path, sizeof(script->path), "/tmp/holt-call-test.%d.%d", (int)getpid(),
                   number++);
    (void)snprintf(script->host, sizeof(script->host), "unix://%s", script->path);
    memcpy(name.sun_path, script->path, sizeof(name.sun_path));
    script->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(script->listen_fd, (const struct sockaddr *)&name, sizeof(name)) == 0);
    CHECK(listen(script->listen_fd, 4) == 0);
    CHECK(sem_init(&script->word, 0, 0) == 0);
    CHECK(pthread_create(&script->thread, NULL, play, script) == 0);
}

static void script_finish(struct script *script)
{
    CHECK(pthread_join(script->thread, NULL) == 0);
    (void)sem_destroy(&script->word);
    (void)close(script->listen_fd);
    CHECK(unlink(script->path) == 0);
}

static int open_at(const char *host, struct holt **ret, struct holt_error *error)
{
    struct holt_options options = HOLT_INIT(holt_options);

    options.host = host;
    return holt_open(&options, HOLT_NO_DEADLINE, ret, error);
}

#define OK_HEAD "HTTP/1.1 200 OK\r\n"
#define OK_EMPTY OK_HEAD "Content-Length: 2\r\n\r\n{}"

/* Opens, makes count calls and closes. */
static void call_often(const struct script *script, int count)
{
    struct holt_error error;
    struct holt *holt;

    CHECK(open_at(script->host, &holt, &error) == 0, "(%s)", error.message);
    for (int i = 0; i < count; i++) {
        char *reply = NULL;

        CHECK(holt_call(holt, "holt.v1.HostService/Health", "{}", HOLT_NO_DEADLINE, &reply,
                        &error) == 0,
              "(%s)", error.message);
        CHECK_TEXT(reply, "{}");
        free(reply);
    }
    holt_close(holt);
}

static void calls_share_a_connection(void)
{
    static const struct reply replies[] = { REPLY(OK_EMPTY), REPLY(OK_EMPTY), REPLY(OK_EMPTY) };
    struct script script;

    script_start(&script, replies, ARRAY_SIZE(replies));
    call_often(&script, 3);
    script_finish(&script);
}

static void a_connection_that_was_closed_between_calls_is_replaced(void)
{
    static const struct reply replies[] = {
        REPLY(OK_HEAD "Connection: close\r\nContent-Length: 2\r\n\r\n{}"),
        { NULL, 0, false },
        REPLY(OK_EMPTY),
    };
    struct script script;

    script_start(&script, replies, ARRAY_SIZE(replies));
    call_often(&script, 2);
    script_finish(&script);
}

static void check_error(const char *reply_text, const char *code, const char *message)
{
    const struct reply replies[] = { { reply_text, strlen(reply_text), false } };
    struct holt_error error;
    struct script script;
    struct holt *holt;
    char *reply = NULL;

    script_start(&script, replies, 1);
    CHECK(open_at(script.host, &holt, &error) == 0);
    CHECK(holt_call(holt, "a.B/C", "{}", HOLT_NO_DEADLINE, &reply, &error) == -1);
    CHECK_TEXT(error.code, code);
    CHECK_TEXT(error.message, message);
    holt_close(holt);
    script_finish(&script);
}

static void errors_of_the_daemon_are_read(void)
{
    check_error("HTTP/1.1 404 Not Found\r\nContent-Length: 39\r\n\r\n"
                "{\"code\":\"not_found\",\"message\":\"no 'x'\"}",
                "not_found", "no 'x'");
    check_error("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", "unauthenticated",
                "the daemon replied with HTTP status 401");
    check_error("HTTP/1.1 503 Busy\r\nContent-Length: 6\r\n\r\n<html>", "unavailable",
                "the daemon replied with HTTP status 503");
    check_error("HTTP/1.1 418 Teapot\r\nContent-Length: 12\r\n\r\n{\"code\":404}", "unknown",
                "the daemon replied with HTTP status 418");
}

static void open_stream(const struct script *script, struct holt **ret_holt,
                        struct holt_stream **ret_stream)
{
    struct holt_error error;

    CHECK(open_at(script->host, ret_holt, &error) == 0);
    CHECK(holt_stream_open(*ret_holt, "a.B/C", "{}", HOLT_NO_DEADLINE, ret_stream, &error) == 0);
}

/* Waits as an event loop would, then reads the next message. */
static int next(struct holt_stream *stream, char *text, size_t size, struct holt_error *error)
{
    struct pollfd wait = { .fd = holt_stream_fd(stream), .events = POLLIN };
    const char *message;
    size_t len;
    int r;

    if (wait.fd >= 0)
        CHECK(poll(&wait, 1, 300 * 1000) == 1);
    r = holt_stream_next(stream, &message, &len, error);
    if (r == 1)
        (void)snprintf(text, size, "%.*s", (int)len, message);
    return r;
}

static void a_stream_gives_its_messages_and_then_the_connection_back(void)
{
    static const struct reply replies[] = {
        REPLY(OK_HEAD "Transfer-Encoding: chunked\r\n\r\n"
                      "8\r\n\0\0\0\0\3{1}\r\n"
                      "4\r\n\0\0\0\0\r\n"
                      "B\r\n\3{2}\2\0\0\0\2{}\r\n"
                      "0\r\n\r\n"),
        REPLY(OK_EMPTY),
    };
    struct holt_stream *stream;
    struct holt_error error;
    struct script script;
    char *reply = NULL;
    struct holt *holt;
    char text[16];

    script_start(&script, replies, ARRAY_SIZE(replies));
    open_stream(&script, &holt, &stream);
    CHECK(next(stream, text, sizeof(text), &error) == 1);
    CHECK_TEXT(text, "{1}");
    CHECK(next(stream, text, sizeof(text), &error) == 1);
    CHECK_TEXT(text, "{2}");
    CHECK(next(stream, text, sizeof(text), &error) == 0);
    CHECK(next(stream, text, sizeof(text), &error) == -1, "(it is over)");
    holt_stream_close(stream);
    CHECK(holt_call(holt, "a.B/C", "{}", HOLT_NO_DEADLINE, &reply, &error) == 0);
    free(reply);
    holt_close(holt);
    script_finish(&script);
}

static void the_end_of_a_stream_is_not_waited_for_twice(void)
{
    static const struct reply replies[] = {
        REPLY(OK_HEAD "Transfer-Encoding: chunked\r\n\r\n7\r\n\2\0\0\0\2{}\r\n"),
        { "0\r\n\r\n", 5, true },
        REPLY(OK_EMPTY),
    };
    struct holt_stream *stream;
    struct holt_error error;
    struct script script;
    char *reply = NULL;
    struct holt *holt;
    char text[16];

    script_start(&script, replies, ARRAY_SIZE(replies));
    open_stream(&script, &holt, &stream);
    CHECK(next(stream, text, sizeof(text), &error) == 0, "(HTTP's own end is still to come)");
    holt_stream_close(stream);
    CHECK(sem_post(&script.word) == 0);
    CHECK(holt_call(holt, "a.B/C", "{}", HOLT_NO_DEADLINE, &reply, &error) == 0, "(%s)",
          error.message);
    free(reply);
    holt_close(holt);
    script_finish(&script);
}

static void check_stream_error(const struct reply *reply, const char *code, const char *message)
{
    struct holt_stream *stream;
    struct holt_error error;
    struct script script;
    struct holt *holt;
    char text[16];

    script_start(&script, reply, 1);
    open_stream(&script, &holt, &stream);
    CHECK(next(stream, text, sizeof(text), &error) == -1);
    CHECK_TEXT(error.code, code);
    CHECK_TEXT(error.message, message);
    holt_stream_close(stream);
    holt_close(holt);
    script_finish(&script);
}

static void a_stream_can_fail_in_every_way(void)
{
    static const struct reply refused = REPLY("HTTP/1.1 404 Not Found\r\nContent-Length: 39\r\n\r\n"
                                              "{\"code\":\"not_found\",\"message\":\"no 'x'\"}");
    static const struct reply failed = REPLY(
        OK_HEAD "Transfer-Encoding: chunked\r\n\r\n"
                "37\r\n\2\0\0\0\x32{\"error\":{\"code\":\"internal\",\"message\":\"it broke\"}}"
                "\r\n0\r\n\r\n");
    static const struct reply broken_off = REPLY(OK_HEAD "Content-Length: 3\r\n\r\n\0\0\0");
    static const struct reply compressed = REPLY(OK_HEAD "Content-Length: 3\r\n\r\n\1\0\0");
    static const struct reply too_long =
        REPLY(OK_HEAD "Content-Length: 99\r\n\r\n\0\x7f\xff\xff\xff");

    check_stream_error(&refused, "not_found", "no 'x'");
    check_stream_error(&failed, "internal", "it broke");
    check_stream_error(&broken_off, "unavailable", "the daemon closed the stream early");
    check_stream_error(&compressed, "internal", "cannot read the daemon's stream: Protocol error");
    check_stream_error(&too_long, "internal", "cannot read the daemon's stream: Message too long");
}

static void a_stream_that_is_left_early_costs_only_its_connection(void)
{
    static const struct reply replies[] = {
        REPLY(OK_HEAD "Transfer-Encoding: chunked\r\n\r\n8\r\n\0\0\0\0\3{1}\r\n"),
        { NULL, 0, false },
        REPLY(OK_EMPTY),
    };
    struct holt_stream *stream;
    struct holt_error error;
    struct script script;
    char *reply = NULL;
    struct holt *holt;
    char text[16];

    script_start(&script, replies, ARRAY_SIZE(replies));
    open_stream(&script, &holt, &stream);
    CHECK(next(stream, text, sizeof(text), &error) == 1);
    holt_stream_close(stream);
    CHECK(holt_call(holt, "a.B/C", "{}", HOLT_NO_DEADLINE, &reply, &error) == 0, "(%s)",
          error.message);
    free(reply);
    holt_close(holt);
    script_finish(&script);
}

static void nobody_there_is_unavailable(void)
{
    struct holt_options options = HOLT_INIT(holt_options);
    struct holt_error error;
    struct holt *holt;

    CHECK(open_at("unix:///nonexistent/holt.sock", &holt, &error) == -1);
    CHECK_TEXT(error.code, "unavailable");
    CHECK(open_at("http://127.0.0.1:1", &holt, &error) == -1);
    CHECK_TEXT(error.code, "unavailable");
    options.host = "http://127.0.0.1:1";
    options.token = "two\r\nlines";
    CHECK(holt_open(&options, HOLT_NO_DEADLINE, &holt, &error) == -1);
    CHECK_TEXT(error.code, "invalid_argument");
}

static void addresses_are_read(void)
{
    static const char *const wrong[] = {
        "",           "holt.sock",    "unix://holt.sock", "https://x:1/path",
        "tcp://x:1",  "http://",      "http://x:y",       "http://x:1/path",
        "http://u@x", "http://x:1?q", "http://:1",        "http://x:1#there",
    };
    struct holt_error error;
    struct address address;

    CHECK(address_parse("unix:///run/holt/holt.sock", &address, &error) == 0);
    CHECK(address.is_unix);
    CHECK_TEXT(address.host, "/run/holt/holt.sock");
    CHECK(address_parse("http://node-1.example:7070/", &address, &error) == 0);
    CHECK(!address.is_unix);
    CHECK_TEXT(address.host, "node-1.example");
    CHECK_TEXT(address.authority, "node-1.example:7070");
    CHECK(address_parse("http://[::1]:7070", &address, &error) == 0);
    CHECK_TEXT(address.host, "::1");
    CHECK_TEXT(address.authority, "[::1]:7070");
    CHECK(!address.is_tls);
    CHECK(address_parse("https://node-1.example", &address, &error) == 0);
    CHECK(address.is_tls && !address.is_unix);
    CHECK_TEXT(address.authority, "node-1.example:443");
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        CHECK(address_parse(wrong[i], &address, &error) == -1, "(%s)", wrong[i]);
        CHECK_TEXT(error.code, "invalid_argument");
    }
}

int main(void)
{
    RUN(calls_share_a_connection);
    RUN(a_connection_that_was_closed_between_calls_is_replaced);
    RUN(errors_of_the_daemon_are_read);
    RUN(a_stream_gives_its_messages_and_then_the_connection_back);
    RUN(the_end_of_a_stream_is_not_waited_for_twice);
    RUN(a_stream_can_fail_in_every_way);
    RUN(a_stream_that_is_left_early_costs_only_its_connection);
    RUN(nobody_there_is_unavailable);
    RUN(addresses_are_read);
    return 0;
}
