// SPDX-License-Identifier: Apache-2.0
/* The handle against servers that do not behave: deadlines, reuse of connections, repeats. */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "check.h"
#include "holt.h"

enum {
    THREADS = 8,
    CALLS = 40,
    SHORT_MS = 150,       /* for calls that must fail */
    LONG_MS = 300 * 1000, /* for calls that must not */
    CONNECTIONS_MAX = 64, /* of one server */
    REQUEST_MAX = 16 * 1024,
};

#define OK_EMPTY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

/* Answers one request; false hangs up. number counts those of this server, from 1. */
typedef bool (*answer_fn)(int fd, const char *request, int number);

struct server {
    char path[64], host[80];
    int listen_fd;
    answer_fn answer;
    pthread_t thread;
    pthread_t threads[CONNECTIONS_MAX];
    int fds[CONNECTIONS_MAX];
    atomic_int connections, open, requests;
};

struct served {
    struct server *server;
    int fd;
};

/* Sends everything; ignores a client that has disconnected. */
static bool put(int fd, const char *text)
{
    return send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text);
}

/* Whether one request is whole; bodies here are short. */
static bool is_whole(const char *request)
{
    const char *end = strstr(request, "\r\n\r\n"), *len = strstr(request, "Content-Length: ");

    return end && len && strlen(end + 4) >= strtoul(len + 16, NULL, 10);
}

static void *serve(void *argument)
{
    struct served *served = argument;
    struct server *server = served->server;
    bool goes_on = true;

    while (goes_on) {
        char request[REQUEST_MAX] = "";
        size_t len = 0;

        while (!is_whole(request)) {
            ssize_t n = recv(served->fd, request + len, sizeof(request) - 1 - len, 0);

            if (n <= 0)
                goto out;
            len += (size_t)n;
            request[len] = '\0';
        }
        goes_on = server->answer(served->fd, request, atomic_fetch_add(&server->requests, 1) + 1);
    }
out:
    (void)shutdown(served->fd, SHUT_RDWR);
    (void)atomic_fetch_sub(&server->open, 1);
    free(served);
    return NULL;
}

static void *accept_all(void *argument)
{
    struct server *server = argument;
    int fd;

    while ((fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        struct served *served = xcalloc(1, sizeof(*served));
        int number = atomic_load(&server->connections);

        CHECK(number < CONNECTIONS_MAX);
        *served = (struct served){ server, fd };
        server->fds[number] = fd;
        (void)atomic_fetch_add(&server->open, 1);
        CHECK(pthread_create(&server->threads[number], NULL, serve, served) == 0);
        (void)atomic_fetch_add(&server->connections, 1);
    }
    return NULL;
}

static void server_listen(struct server *server)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };

    memcpy(name.sun_path, server->path, sizeof(server->path));
    server->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(server->listen_fd, (const struct sockaddr *)&name, sizeof(name)) == 0);
    CHECK(listen(server->listen_fd, CONNECTIONS_MAX) == 0);
    CHECK(pthread_create(&server->thread, NULL, accept_all, server) == 0);
}

static void server_start(struct server *server, answer_fn answer)
{
    static int number;

    *server = (struct server){ .answer = answer };
    (void)snprintf(server->path, sizeof(server->path), "/tmp/holt-handle-test.%d.%d", (int)getpid(),
                   number++);
    (void)snprintf(server->host, sizeof(server->host), "unix://%s", server->path);
    server_listen(server);
}

static void server_stop(struct server *server)
{
    (void)shutdown(server->listen_fd, SHUT_RDWR);
    CHECK(pthread_join(server->thread, NULL) == 0);
    for (int i = 0; i < atomic_load(&server->connections); i++) {
        (void)shutdown(server->fds[i], SHUT_RDWR);
        CHECK(pthread_join(server->threads[i], NULL) == 0);
        (void)close(server->fds[i]);
    }
    (void)close(server->listen_fd);
    CHECK(unlink(server->path) == 0);
    atomic_store(&server->connections, 0);
}

static struct holt *open_at(const char *host, unsigned idle_max)
{
    struct holt_options options = HOLT_INIT(holt_options);
    struct holt_error error;
    struct holt *holt;

    options.host = host;
    options.idle_max = idle_max;
    CHECK(holt_open(&options, holt_after(LONG_MS), &holt, &error) == 0, "(%s)", error.message);
    return holt;
}

static int call(struct holt *holt, int64_t ms, struct holt_error *error)
{
    cleanup_free char *reply = NULL;

    return holt_call(holt, "a.B/C", "{}", holt_after(ms), &reply, error);
}

static bool answer_well(int fd, const char *request, int number)
{
    (void)request;
    (void)number;
    return put(fd, OK_EMPTY);
}

static bool answer_never(int fd, const char *request, int number)
{
    char byte;

    (void)request;
    (void)number;
    return recv(fd, &byte, 1, 0) > 0; /* until the client goes */
}

static bool answer_in_drops(int fd, const char *request, int number)
{
    (void)request;
    (void)number;
    if (!put(fd, "HTTP/1.1 200 OK\r\nX: "))
        return false;
    while (send(fd, "x", 1, MSG_NOSIGNAL) == 1)
        (void)usleep(5000);
    return false;
}

static void a_call_that_is_not_answered_ends_at_its_deadline(void)
{
    static const answer_fn answers[] = { answer_never, answer_in_drops };

    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        struct holt_stream *stream;
        struct holt_error error;
        struct server server;
        const char *message;
        struct holt *holt;
        size_t len;

        server_start(&server, answers[i]);
        holt = open_at(server.host, 0);
        CHECK(call(holt, SHORT_MS, &error) == -1);
        CHECK_TEXT(error.code, "deadline_exceeded");
        CHECK(holt_stream_open(holt, "a.B/C", "{}", holt_after(SHORT_MS), &stream, &error) == 0);
        CHECK(holt_stream_next(stream, &message, &len, &error) == -1);
        CHECK_TEXT(error.code, "deadline_exceeded");
        holt_stream_close(stream);
        CHECK(call(holt, -1000, &error) == -1, "(a moment that has passed)");
        CHECK_TEXT(error.code, "deadline_exceeded");
        holt_close(holt);
        server_stop(&server);
    }
}

static void a_request_that_is_not_taken_ends_at_its_deadline(void)
{
    const size_t len = 8UL << 20;
    cleanup_free char *request = xcalloc(1, len + 1), *reply = NULL;
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    struct holt_options options = HOLT_INIT(holt_options);
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct holt_error error;
    struct holt *holt;
    char host[128];

    (void)snprintf(name.sun_path, sizeof(name.sun_path), "/tmp/holt-handle-full.%d", (int)getpid());
    (void)snprintf(host, sizeof(host), "unix://%s", name.sun_path);
    CHECK(bind(fd, (const struct sockaddr *)&name, sizeof(name)) == 0 && listen(fd, 0) == 0);
    holt = open_at(host, 0); /* which fills the listen queue */
    memset(request, ' ', len);
    CHECK(holt_call(holt, "a.B/C", request, holt_after(SHORT_MS), &reply, &error) == -1);
    CHECK_TEXT(error.code, "deadline_exceeded");
    holt_close(holt);
    options.host = host;
    CHECK(holt_open(&options, holt_after(SHORT_MS), &holt, &error) == -1);
    CHECK_TEXT(error.code, "deadline_exceeded");
    CHECK(unlink(name.sun_path) == 0);
}

static void a_handshake_that_stalls_ends_at_its_deadline(void)
{
    struct sockaddr_in name = { .sin_family = AF_INET };
    struct holt_options options = HOLT_INIT(holt_options);
    cleanup_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = sizeof(name);
    struct holt_error error;
    struct holt *holt;
    char host[64];

    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(fd, (const struct sockaddr *)&name, len) == 0 && listen(fd, 4) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&name, &len) == 0);
    (void)snprintf(host, sizeof(host), "https://127.0.0.1:%d", ntohs(name.sin_port));
    options.host = host;
    CHECK(holt_open(&options, holt_after(SHORT_MS), &holt, &error) == -1);
    CHECK_TEXT(error.code, "deadline_exceeded");
    options.ca_file = "/nonexistent/ca.pem";
    CHECK(holt_open(&options, holt_after(SHORT_MS), &holt, &error) == -1);
    CHECK_TEXT(error.code, "invalid_argument");
}

static bool answer_with_timeout(int fd, const char *request, int number)
{
    char reply[256], body[64];
    const char *header = strstr(request, "Connect-Timeout-Ms: ");

    (void)number;
    (void)snprintf(body, sizeof(body), "{\"ms\":%ld}", header ? strtol(header + 20, NULL, 10) : -1);
    (void)snprintf(reply, sizeof(reply), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
                   strlen(body), body);
    return put(fd, reply);
}

static void the_daemon_is_told_of_the_deadline(void)
{
    cleanup_free char *with = NULL, *without = NULL;
    struct holt_error error;
    struct server server;
    struct holt *holt;
    long ms;

    server_start(&server, answer_with_timeout);
    holt = open_at(server.host, 0);
    CHECK(holt_call(holt, "a.B/C", "{}", holt_after(LONG_MS), &with, &error) == 0);
    ms = strtol(with + strlen("{\"ms\":"), NULL, 10);
    CHECK(ms > 0 && ms <= LONG_MS, "(%s)", with);
    CHECK(holt_call(holt, "a.B/C", "{}", HOLT_NO_DEADLINE, &without, &error) == 0);
    CHECK_TEXT(without, "{\"ms\":-1}");
    holt_close(holt);
    server_stop(&server);
}

static void *call_often(void *argument)
{
    struct holt_error error;

    for (int i = 0; i < CALLS; i++)
        CHECK(call(argument, LONG_MS, &error) == 0, "(%s)", error.message);
    return NULL;
}

static void eventually_open(struct server *server, int wanted)
{
    while (atomic_load(&server->open) != wanted)
        (void)usleep(1000);
}

static void threads_share_a_handle_and_its_connections(void)
{
    enum { IDLE = 3 };
    pthread_t threads[THREADS];
    struct server server;
    struct holt *holt;

    server_start(&server, answer_well);
    holt = open_at(server.host, IDLE);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, call_often, holt) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(atomic_load(&server.requests) == THREADS * CALLS);
    CHECK(atomic_load(&server.open) >= 1);
    while (atomic_load(&server.open) > IDLE)
        (void)usleep(1000);
    holt_close(holt);
    eventually_open(&server, 0);
    server_stop(&server);
}

static void one_thread_needs_one_connection(void)
{
    struct server server;
    struct holt *holt;

    server_start(&server, answer_well);
    holt = open_at(server.host, 0);
    (void)call_often(holt);
    CHECK(atomic_load(&server.connections) == 1, "(%d)", atomic_load(&server.connections));
    holt_close(holt);
    server_stop(&server);
}

static void a_daemon_that_was_restarted_is_found_again(void)
{
    struct holt_error error;
    struct server server;
    struct holt *holt;

    server_start(&server, answer_well);
    holt = open_at(server.host, 0);
    CHECK(call(holt, LONG_MS, &error) == 0);
    server_stop(&server);
    CHECK(call(holt, LONG_MS, &error) == -1);
    CHECK_TEXT(error.code, "unavailable");
    CHECK(error.is_retryable);
    server_listen(&server);
    CHECK(call(holt, LONG_MS, &error) == 0, "(%s)", error.message);
    CHECK(atomic_load(&server.requests) == 2);
    holt_close(holt);
    server_stop(&server);
}

/* Takes two requests and hangs up on both, then answers. */
static bool answer_the_third(int fd, const char *request, int number)
{
    static const char sandbox[] = "HTTP/1.1 200 OK\r\nContent-Length: 25\r\n\r\n"
                                  "{\"sandbox\":{\"id\":\"sb-1\"}}";

    (void)request;
    return number >= 3 && put(fd, sandbox);
}

typedef int (*try_fn)(struct holt *holt, struct holt_error *error);

static int try_call(struct holt *holt, struct holt_error *error)
{
    return call(holt, LONG_MS, error);
}

static int try_pause(struct holt *holt, struct holt_error *error)
{
    return holt_sandbox_pause(holt, "sb-1", holt_after(LONG_MS), NULL, error);
}

static int try_get(struct holt *holt, struct holt_error *error)
{
    struct holt_sandbox *sandbox = NULL;
    int r = holt_sandbox_get(holt, "sb-1", holt_after(LONG_MS), &sandbox, error);

    CHECK(r < 0 || strcmp(sandbox->id, "sb-1") == 0);
    holt_free(sandbox);
    return r;
}

static int create(struct holt *holt, const char *key, struct holt_error *error)
{
    struct holt_sandbox_options options = HOLT_INIT(holt_sandbox_options);

    options.idempotency_key = key;
    return holt_sandbox_create(holt, &options, holt_after(LONG_MS), NULL, error);
}

static int try_create(struct holt *holt, struct holt_error *error)
{
    return create(holt, NULL, error);
}

static int try_create_with_key(struct holt *holt, struct holt_error *error)
{
    return create(holt, "k", error);
}

static void only_what_may_be_repeated_is_sent_again(void)
{
    static const struct {
        try_fn attempt;
        int result;
        int requests;
    } rows[] = {
        { try_call, -1, 1 }, { try_pause, -1, 1 },          { try_create, -1, 1 },
        { try_get, 0, 3 },   { try_create_with_key, 0, 3 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct holt_error error;
        struct server server;
        struct holt *holt;

        server_start(&server, answer_the_third);
        holt = open_at(server.host, 0);
        CHECK(rows[i].attempt(holt, &error) == rows[i].result, "(%zu: %s)", i, error.message);
        CHECK(rows[i].result == 0 || strcmp(error.code, "unavailable") == 0);
        CHECK(atomic_load(&server.requests) == rows[i].requests, "(%zu: %d)", i,
              atomic_load(&server.requests));
        holt_close(holt);
        server_stop(&server);
    }
}

static void options_of_an_older_program_are_shorter(void)
{
    struct holt_options options = HOLT_INIT(holt_options);
    struct holt_error error;
    struct server server;
    struct holt *holt;

    server_start(&server, answer_well);
    options.host = server.host;
    options.size = offsetof(struct holt_options, token);
    options.token = "not\na token"; /* what lies behind the end is not looked at */
    CHECK(holt_open(&options, holt_after(LONG_MS), &holt, &error) == 0, "(%s)", error.message);
    holt_close(holt);
    options.size = 0;
    CHECK(holt_open(&options, holt_after(LONG_MS), &holt, &error) == -1);
    CHECK_TEXT(error.code, "invalid_argument");
    server_stop(&server);
}

int main(void)
{
    RUN(a_call_that_is_not_answered_ends_at_its_deadline);
    RUN(a_request_that_is_not_taken_ends_at_its_deadline);
    RUN(a_handshake_that_stalls_ends_at_its_deadline);
    RUN(the_daemon_is_told_of_the_deadline);
    RUN(threads_share_a_handle_and_its_connections);
    RUN(one_thread_needs_one_connection);
    RUN(a_daemon_that_was_restarted_is_found_again);
    RUN(only_what_may_be_repeated_is_sent_again);
    RUN(options_of_an_older_program_are_shorter);
    return 0;
}
