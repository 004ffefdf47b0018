/* Runs the real holt binary against a fake daemon: which requests it sends, and what a user sees. A
 * test defines serve_call. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text/base64.h"
#include "base/xalloc.h"
#include "check.h"
#include "wire/envelope.h"

enum { REQUEST_MAX = 1024 * 1024, TEXT_SIZE = 1024 * 1024, WORDS_MAX = 24 };

static char directory[] = "/tmp/holt-cli-test.XXXXXX";
static char *binary, *host_variable;

/* Answers one request. */
static void serve_call(int fd, const char *method, const char *body, size_t len);

/* ---- the daemon's part ---- */

static void send_text(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

        if (n <= 0)
            return;
        data += n;
        len -= (size_t)n;
    }
}

static inline void reply(int fd, int status, const char *body)
{
    cleanup_free char *text = xasprintf(
        "HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", status,
        strlen(body), body);

    send_text(fd, text, strlen(text));
}

static inline void reply_stream(int fd)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: application/connect+json\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n";

    send_text(fd, head, strlen(head));
}

static void send_chunk(int fd, const struct buf *body)
{
    cleanup_with(buf_done) struct buf chunk = BUF_INIT(2 * REQUEST_MAX);

    CHECK(buf_printf(&chunk, "%zx\r\n", body->len) == 0);
    CHECK(buf_add(&chunk, body->data, body->len) == 0);
    CHECK(buf_add_str(&chunk, "\r\n") == 0);
    send_text(fd, chunk.data, chunk.len);
}

static inline void event(int fd, const char *json)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(REQUEST_MAX);

    CHECK(envelope_add(&body, json, strlen(json)) == 0);
    send_chunk(fd, &body);
}

static inline void event_output(int fd, const char *name, const char *data, size_t len)
{
    cleanup_with(buf_done) struct buf json = BUF_INIT(REQUEST_MAX);

    CHECK(buf_printf(&json, "{\"%s\":\"", name) == 0);
    CHECK(base64_encode(&json, data, len) == 0);
    CHECK(buf_add_str(&json, "\"}") == 0);
    event(fd, json.data);
}

/* ERR_NONE: a good end. */
static inline void stream_end(int fd, enum err_kind kind, const char *message)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(REQUEST_MAX);
    struct err err;

    (void)err_set(&err, kind, "%s", message ? message : "");
    CHECK(envelope_add_end(&body, kind ? &err : NULL) == 0);
    send_chunk(fd, &body);
    send_text(fd, "0\r\n\r\n", 5);
}

/* Reads one request and answers it: false at the end of the connection. */
static bool serve_one(int fd)
{
    cleanup_with(buf_done) struct buf in = BUF_INIT(REQUEST_MAX);
    char piece[4096], method[64] = "";
    size_t body_len = 0;
    const char *end;

    for (;;) {
        ssize_t n;

        end = in.data ? memmem(in.data, in.len, "\r\n\r\n", 4) : NULL;
        if (end) {
            CHECK(sscanf(in.data, "POST /holt.v1.%63s HTTP/1.1", method) == 1);
            body_len = strtoul(strstr(in.data, "Content-Length: ") + 16, NULL, 10);
            if (in.len == (size_t)(end + 4 - in.data) + body_len)
                break;
        }
        n = recv(fd, piece, sizeof(piece), 0);
        if (n <= 0)
            return false;
        CHECK(buf_add(&in, piece, (size_t)n) == 0);
    }
    serve_call(fd, method, end + 4, body_len);
    return true;
}

static void *serve_connection(void *argument)
{
    cleanup_close int fd = (int)(intptr_t)argument;

    while (serve_one(fd))
        ;
    return NULL;
}

static void *serve(void *argument)
{
    int listen_fd = (int)(intptr_t)argument;

    for (;;) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
        pthread_t thread;

        CHECK(fd >= 0);
        CHECK(pthread_create(&thread, NULL, serve_connection, (void *)(intptr_t)fd) == 0);
        CHECK(pthread_detach(thread) == 0);
    }
}

static void start_daemon(void)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pthread_t thread;

    CHECK(mkdtemp(directory) != NULL);
    (void)snprintf(name.sun_path, sizeof(name.sun_path), "%s/holt.sock", directory);
    CHECK(bind(fd, (const struct sockaddr *)&name, sizeof(name)) == 0);
    CHECK(listen(fd, 16) == 0);
    CHECK(pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) == 0);
    host_variable = xasprintf("HOLT_HOST=unix://%s", name.sun_path);
}

/* ---- the user's part ---- */

struct user {
    pid_t pid;
    int in, out, err; /* our ends */
};

struct seen {
    int status;
    size_t out_len;
    char out[TEXT_SIZE];
    char err[4096];
};

static struct seen seen;

static void make_pipe(int *ret_read, int *ret_write)
{
    int ends[2];

    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    *ret_read = ends[0];
    *ret_write = ends[1];
}

/* Starts `holt words...`, with a pipe as stdin, or with /dev/null. */
static void user_start(struct user *user, bool has_stdin, const char *const *words)
{
    char *environment[] = { host_variable, NULL };
    const char *argv[WORDS_MAX] = { "holt" };
    posix_spawn_file_actions_t files;
    int in = -1, out, err;

    for (size_t i = 0; words[i] && i < ARRAY_SIZE(argv) - 2; i++)
        argv[i + 1] = words[i];
    user->in = -1;
    CHECK(posix_spawn_file_actions_init(&files) == 0);
    if (has_stdin) {
        make_pipe(&in, &user->in);
        CHECK(posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO) == 0);
    } else
        CHECK(posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0) ==
              0);
    make_pipe(&user->out, &out);
    make_pipe(&user->err, &err);
    CHECK(posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO) == 0);
    CHECK(posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO) == 0);
    CHECK(posix_spawn(&user->pid, binary, &files, NULL, (char *const *)(uintptr_t)argv,
                      environment) == 0);
    CHECK(posix_spawn_file_actions_destroy(&files) == 0);
    (void)fd_close(in);
    (void)close(out);
    (void)close(err);
}

/* Reads what holt writes until it has ended. */
static void user_finish(struct user *user)
{
    int status;
    ssize_t n = user->out >= 0 ? read_full(user->out, seen.out, sizeof(seen.out) - 1) : 0;

    CHECK(n >= 0);
    seen.out_len = (size_t)n;
    seen.out[n] = '\0';
    n = read_full(user->err, seen.err, sizeof(seen.err) - 1);
    CHECK(n >= 0);
    seen.err[n] = '\0';
    CHECK(waitpid(user->pid, &status, 0) == user->pid);
    CHECK(WIFEXITED(status), "(signal %d)", WTERMSIG(status));
    seen.status = WEXITSTATUS(status);
    user->in = fd_close(user->in);
    user->out = fd_close(user->out);
    user->err = fd_close(user->err);
}

static inline void holt_words(const char *const *words)
{
    struct user user;

    user_start(&user, false, words);
    user_finish(&user);
}

#define HOLT(...) holt_words((const char *const[]){ __VA_ARGS__, NULL })

#define CHECK_SEEN(wanted_status, wanted_out, wanted_err)                                          \
    do {                                                                                           \
        CHECK_TEXT(seen.err, wanted_err);                                                          \
        CHECK_TEXT(seen.out, wanted_out);                                                          \
        CHECK(seen.status == (wanted_status), "(got %d)", seen.status);                            \
    } while (0)

static void find_binary(void)
{
    binary = xstrdup(build_path("holt"));
    CHECK(access(binary, X_OK) == 0, "(%s is not built)", binary);
}

static void clean_up(void)
{
    cleanup_free char *path = xasprintf("%s/holt.sock", directory);

    (void)unlink(path);
    (void)rmdir(directory);
    free(binary);
    free(host_variable);
}
