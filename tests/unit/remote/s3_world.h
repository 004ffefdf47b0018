/* A server of the S3 API on loopback that a test commands (s3_server.py), and storages on it. */
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/files/tree.h"
#include "unit/remote/suite.h"

#define S3_BUCKET "holt-bucket"
#define S3_ACCESS "AKIAHOLT"
#define S3_SECRET "a/secret+key="

struct server {
    pid_t pid;
    FILE *to, *from;
    char endpoint[64];
};

static struct server server;
static char top[] = "/tmp/holt-s3-XXXXXX"; /* has the key file */

static void line_read(struct server *of, char *ret, size_t size)
{
    CHECK(fgets(ret, (int)size, of->from));
    ret[strcspn(ret, "\n")] = '\0';
}

static void server_start(struct server *ret)
{
    int in[2], out[2];
    char port[16];

    CHECK(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
    ret->pid = fork();
    CHECK(ret->pid >= 0);
    if (ret->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (dup2(in[0], STDIN_FILENO) >= 0 && dup2(out[1], STDOUT_FILENO) >= 0)
            (void)execlp("python3", "python3", "tests/unit/remote/s3_server.py", S3_BUCKET,
                         S3_ACCESS, S3_SECRET, (char *)NULL);
        _exit(1);
    }
    (void)close(in[0]);
    (void)close(out[1]);
    ret->to = fdopen(in[1], "w");
    ret->from = fdopen(out[0], "r");
    CHECK(ret->to && ret->from);
    line_read(ret, port, sizeof(port));
    (void)snprintf(ret->endpoint, sizeof(ret->endpoint), "http://127.0.0.1:%.8s", port);
}

static void server_stop(struct server *stopped)
{
    (void)fclose(stopped->to);
    (void)fclose(stopped->from);
    CHECK(kill(stopped->pid, SIGKILL) == 0 && waitpid(stopped->pid, NULL, 0) == stopped->pid);
}

/* Gives a server a command and returns its answer, valid until the next call. */
__attribute__((format(printf, 2, 3))) static const char *ask(struct server *of, const char *format,
                                                             ...)
{
    static char answer[512];
    va_list args;

    va_start(args, format);
    (void)vfprintf(of->to, format, args);
    va_end(args);
    (void)fputc('\n', of->to);
    CHECK(fflush(of->to) == 0);
    line_read(of, answer, sizeof(answer));
    return answer;
}

#define TELL(...) CHECK_TEXT(ask(&server, __VA_ARGS__), "ok")

static unsigned requests(void)
{
    return (unsigned)strtoul(ask(&server, "count"), NULL, 10);
}

/* Writes the key file, which is called NAME. */
static const char *key_file_write(const char *name, const char *text, mode_t mode)
{
    static char path[128];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", top, name);
    fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, mode);
    CHECK(fd >= 0 && fchmod(fd, mode) == 0);
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
    return path;
}

static const char *key_file(void)
{
    static char path[128];

    (void)snprintf(path, sizeof(path), "%s/key", top);
    return path;
}

/* Returns what reaches the test's server; a test may change it before it opens the storage. */
static struct remote_config config_of(const char *url)
{
    return (struct remote_config){
        .url = url,
        .endpoint = server.endpoint,
        .key_file = key_file(),
        .timeout_ms = 1000,
    };
}

static struct remote *open_with(const struct remote_config *config)
{
    struct remote *opened = NULL;

    CHECK(remote_open(config, &opened, &err) == 0, "(%s)", err.msg);
    return opened;
}

/* Makes a server and the key file for all tests that `parts` runs with around(). */
static void world_run(test_fn *parts)
{
    CHECK(mkdtemp(top));
    server_start(&server);
    parts();
    server_stop(&server);
    CHECK(tree_remove_at(AT_FDCWD, top) == 0);
}

/* Runs a test with a storage without objects. */
static void around(test_fn *test)
{
    const struct remote_config config = config_of("s3://" S3_BUCKET "/some/folder");

    (void)key_file_write("key", S3_ACCESS ":" S3_SECRET "\n", 0600);
    TELL("reset");
    remote = open_with(&config);
    test();
    remote_close(remote);
}

#define RUN_WITH_SERVER(test) test_run(#test, test, around)
