// SPDX-License-Identifier: Apache-2.0
/* The real holt binary against a daemon that is played by this test: what a user sees, for every
 * thing a daemon can answer. args[0] of a run says which part to play. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text/base64.h"
#include "base/xalloc.h"
#include "check.h"
#include "unit/cli/cli.h"
#include "wire/envelope.h"

/* The one run that is under way: where its events go, and what it was asked. */
static atomic_int run_fd = -1, started_count;
static pthread_mutex_t last_run_lock = PTHREAD_MUTEX_INITIALIZER;
static char last_run[4096];

static void ended(int fd, const char *outcome, int exit_code, const char *reason)
{
    cleanup_free char *json =
        xasprintf("{\"ended\":{\"outcome\":\"OUTCOME_%s\",\"exitCode\":%d,\"reason\":\"%s\"}}",
                  outcome, exit_code, reason);

    event(fd, json);
    stream_end(fd, ERR_NONE, NULL);
}

static void play_hello(int fd)
{
    event_output(fd, "stdout", "out\0\n\xff", 6);
    event_output(fd, "stderr", "err\r\n", 5);
    ended(fd, "EXITED", 7, "");
}

static void play_true(int fd)
{
    ended(fd, "EXITED", 0, "");
}

static void play_oom(int fd)
{
    ended(fd, "OOM", 137, "the sandbox may use 8 MiB");
}

static void play_timeout(int fd)
{
    ended(fd, "TIMED_OUT", 124, "");
}

static void play_missing(int fd)
{
    ended(fd, "NOT_STARTED", 127, "No such file or directory");
}

static void play_unstarted(int fd)
{
    stream_end(fd, ERR_INTERNAL, "clone: Resource temporarily\nunavailable");
}

static void play_death(int fd)
{
    (void)shutdown(fd, SHUT_RDWR);
}

static void play_silence(int fd)
{
    stream_end(fd, ERR_NONE, NULL);
}

static void play_flood(int fd)
{
    char data[4096];

    memset(data, 'y', sizeof(data));
    for (int i = 0; i < 1000; i++)
        event_output(fd, "stdout", data, sizeof(data));
    ended(fd, "EXITED", 0, "");
}

/* Others, by way of SendInput and Signal, do the talking. */
static void play_nothing(int fd)
{
    (void)fd;
}

static const struct part {
    const char *name;
    void (*play)(int fd);
} parts[] = {
    { "hello", play_hello },     { "true", play_true },       { "oom", play_oom },
    { "timeout", play_timeout }, { "missing", play_missing }, { "unstarted", play_unstarted },
    { "death", play_death },     { "silence", play_silence }, { "flood", play_flood },
    { "cat", play_nothing },     { "wait", play_nothing },
};

static void serve_run(int fd, const char *body, size_t len)
{
    cleanup_json json_t *request = NULL;
    struct envelope envelope;
    const char *name;
    struct err err;

    CHECK(envelope_parse(body, len, &envelope) == (ssize_t)len);
    CHECK(json_parse_object(envelope.payload, envelope.len, &request, &err) == 0);
    CHECK(pthread_mutex_lock(&last_run_lock) == 0);
    (void)snprintf(last_run, sizeof(last_run), "%.*s", (int)envelope.len, envelope.payload);
    CHECK(pthread_mutex_unlock(&last_run_lock) == 0);
    name = json_string_value(
        json_array_get(json_object_get(json_object_get(request, "process"), "args"), 0));
    if (strcmp(name, "refused") == 0) {
        reply(fd, 404, "{\"code\":\"not_found\",\"message\":\"no template 'x'\"}");
        return;
    }
    atomic_store(&run_fd, fd);
    reply_stream(fd);
    if (strcmp(name, "unstarted") != 0)
        event(fd, "{\"started\":{\"sandboxId\":\"s1\",\"processId\":\"p1\"}}");
    atomic_fetch_add(&started_count, 1);
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        if (strcmp(parts[i].name, name) == 0)
            parts[i].play(fd);
}

static void serve_input(int fd, const json_t *request)
{
    cleanup_with(buf_done) struct buf data = BUF_INIT(REQUEST_MAX);
    bool is_eof = false;
    struct err err;

    CHECK(json_get_bytes(request, "data", &data, &err) == 0);
    CHECK(json_get_bool(request, "eof", &is_eof, &err) == 0);
    CHECK(data.len <= (size_t)64 * 1024);
    if (data.len > 0)
        event_output(run_fd, "stdout", data.data, data.len);
    reply(fd, 200, "{}");
    if (is_eof)
        ended(run_fd, "EXITED", 0, "");
}

static void serve_signal(int fd, const json_t *request)
{
    uint32_t number = 0;
    struct err err;

    CHECK(json_get_u32(request, "signal", &number, &err) == 0);
    reply(fd, 200, "{}");
    ended(run_fd, "SIGNALED", 128 + (int)number, "");
}

/* Tells the run what it heard. */
static void serve_resize(int fd, const json_t *request)
{
    const json_t *size = NULL;
    uint32_t rows = 0, columns = 0;
    struct err err;
    char text[64];

    CHECK(json_get_object(request, "size", &size, &err) == 0 && size);
    CHECK(json_get_u32(size, "rows", &rows, &err) == 0);
    CHECK(json_get_u32(size, "columns", &columns, &err) == 0);
    (void)snprintf(text, sizeof(text), "%ux%u", rows, columns);
    event_output(run_fd, "stdout", text, strlen(text));
    reply(fd, 200, "{}");
}

static void serve_import(int fd)
{
    reply_stream(fd);
    event(fd, "{\"progress\":{\"bytes\":\"1048576\",\"files\":\"10\"}}");
    event(fd, "{\"template\":{\"name\":\"debian\",\"kind\":\"imported\"}}");
    stream_end(fd, ERR_NONE, NULL);
}

static void serve_call(int fd, const char *method, const char *body, size_t len)
{
    cleanup_json json_t *request = NULL;
    struct err err;

    if (strcmp(method, "SandboxService/Run") == 0)
        serve_run(fd, body, len);
    else if (strcmp(method, "TemplateService/Import") == 0)
        serve_import(fd);
    else if (strcmp(method, "TemplateService/List") == 0 && strstr(body, "\"debian\""))
        reply(fd, 200, "{\"templates\":[{\"name\":\"debian\",\"kind\":\"imported\"}]}");
    else if (strcmp(method, "TemplateService/List") == 0)
        reply(fd, 200,
              "{\"templates\":[{\"name\":\"host\",\"kind\":\"host\"},{\"name\":\"debian\",\"kind\":"
              "\"imported\",\"sizeBytes\":\"1572864\",\"files\":\"12\",\"createdAt\":\"86400\"}]}");
    else if (strcmp(method, "TemplateService/Remove") == 0 && strstr(body, "\"busy\""))
        reply(fd, 400, "{\"code\":\"failed_precondition\",\"message\":\"'busy' is in use\"}");
    else if (strcmp(method, "TemplateService/Remove") == 0)
        reply(fd, 200, "{}");
    else {
        CHECK(json_parse_object(body, len, &request, &err) == 0);
        if (strcmp(method, "ProcessService/SendInput") == 0)
            serve_input(fd, request);
        else if (strcmp(method, "ProcessService/Resize") == 0)
            serve_resize(fd, request);
        else
            serve_signal(fd, request);
    }
}

static void output_passes_through_byte_for_byte(void)
{
    HOLT("run", "--", "hello");
    CHECK(seen.out_len == 6 && memcmp(seen.out, "out\0\n\xff", 6) == 0);
    CHECK_TEXT(seen.err, "err\r\n");
    CHECK(seen.status == 7);
    HOLT("run", "true");
    CHECK_SEEN(0, "", "");
}

static void options_become_the_request(void)
{
    HOLT("run", "--template", "debian", "--runtime=bwrap", "-m512M", "--cpus", "1.5", "--pids=256");
    CHECK_SEEN(125, "", "holt: run: needs a COMMAND: template 'debian' has none of its own\n");
    HOLT("run", "--template", "debian", "-m1K", "--cpus=1.5", "--pids=9", "--timeout", "2s", "-e",
         "A=b=c", "--workdir", "/w", "--", "true", "--help");
    CHECK_SEEN(0, "", "");
    CHECK(pthread_mutex_lock(&last_run_lock) == 0);
    CHECK_TEXT(last_run, "{\"sandbox\":{\"template\":\"debian\",\"limits\":{\"memoryBytes\":"
                         "\"1024\",\"cpuMillis\":1500,\"pids\":9}},\"process\":{\"args\":[\"true\","
                         "\"--help\"],\"env\":{\"A\":\"b=c\"},\"cwd\":\"/w\",\"timeoutMs\":"
                         "\"2000\"}}");
    CHECK(pthread_mutex_unlock(&last_run_lock) == 0);
}

static void an_outcome_that_the_status_hides_is_told(void)
{
    HOLT("run", "oom");
    CHECK_SEEN(137, "", "holt: 'oom' ran out of memory: the sandbox may use 8 MiB\n");
    HOLT("run", "timeout");
    CHECK_SEEN(124, "", "holt: 'timeout' timed out\n");
    HOLT("run", "missing");
    CHECK_SEEN(127, "", "holt: cannot start 'missing': No such file or directory\n");
}

static void a_refusal_is_a_line_and_a_remedy_and_125(void)
{
    HOLT("run", "refused");
    CHECK_SEEN(125, "", "holt: no template 'x'\n");
    HOLT("run", "unstarted");
    CHECK_SEEN(125, "",
               "holt: clone: Resource temporarily?unavailable\n"
               "      see the daemon's log\n");
    HOLT("run", "death");
    CHECK_SEEN(125, "", "holt: the daemon closed the connection in the middle of its reply\n");
    HOLT("run", "silence");
    CHECK_SEEN(125, "", "holt: the daemon ended the run without an outcome\n");
}

static void bad_words_are_one_line(void)
{
    HOLT("run", "--memory", "12Q", "true");
    CHECK_SEEN(125, "",
               "holt: run: --memory '12Q' is not a size like 512M; see 'holt run --help'\n");
    HOLT("run", "--bogus", "true");
    CHECK_SEEN(125, "", "holt: run: unknown option --bogus; see 'holt run --help'\n");
    HOLT("run", "-e", "=x", "true");
    CHECK_SEEN(125, "", "holt: run: --env '=x' has no name; see 'holt run --help'\n");
    HOLT("run", "bad\xff");
    CHECK_SEEN(125, "", "holt: run: word 1 of the command is not UTF-8\n");
    HOLT("frobnicate");
    CHECK_SEEN(2, "", "holt: unknown command 'frobnicate'; see 'holt --help'\n");
    HOLT("template", "frobnicate");
    CHECK_SEEN(2, "", "holt: unknown command 'template frobnicate'; see 'holt template --help'\n");
}

static void stdin_reaches_the_process(void)
{
    static char text[300 * 1000];
    struct user user;
    size_t done = 0;

    memset(text, 'x', sizeof(text));
    user_start(&user, true, (const char *const[]){ "run", "cat", NULL });
    while (done < sizeof(text)) {
        ssize_t n = write(user.in, text + done, 30000);
        CHECK(n == 30000);
        CHECK(read_full(user.out, seen.out, 30000) == 30000);
        done += (size_t)n;
    }
    user.in = fd_close(user.in);
    user_finish(&user);
    CHECK_SEEN(0, "", "");
}

static void an_open_stdin_does_not_delay_the_end(void)
{
    struct user user;

    user_start(&user, true, (const char *const[]){ "run", "hello", NULL });
    user_finish(&user);
    CHECK(seen.status == 7);
}

static void a_signal_is_passed_on(void)
{
    static const int passed_on[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };

    for (size_t i = 0; i < ARRAY_SIZE(passed_on); i++) {
        int before = atomic_load(&started_count);
        struct user user;

        user_start(&user, false, (const char *const[]){ "run", "wait", NULL });
        while (atomic_load(&started_count) == before)
            (void)usleep(1000);
        (void)usleep(20000); /* for holt to have read that the process started */
        CHECK(kill(user.pid, passed_on[i]) == 0);
        user_finish(&user);
        CHECK(seen.status == 128 + passed_on[i], "(got %d, '%s')", seen.status, seen.err);
    }
}

static void a_reader_that_leaves_ends_the_run(void)
{
    char first[10];
    struct user user;

    user_start(&user, false, (const char *const[]){ "run", "flood", NULL });
    CHECK(read_full(user.out, first, sizeof(first)) == (ssize_t)sizeof(first));
    user.out = fd_close(user.out);
    user_finish(&user);
    CHECK_TEXT(seen.err, "");
    CHECK(seen.status == 141);
}

static void a_signal_is_served_while_the_reader_sleeps(void)
{
    int before = atomic_load(&started_count);
    struct user user;

    user_start(&user, false, (const char *const[]){ "run", "--tty", "flood", NULL });
    while (atomic_load(&started_count) == before)
        (void)usleep(1000);
    (void)usleep(50000); /* for the pipe to be full */
    CHECK(kill(user.pid, SIGTERM) == 0);
    user_finish(&user);
    CHECK(seen.status == 128 + SIGTERM, "(got %d)", seen.status);
}

/* Whether the other side of the terminal hands keys on as they are typed. */
static bool is_raw(int terminal)
{
    struct termios state;

    CHECK(tcgetattr(terminal, &state) == 0);
    return !(state.c_lflag & (ICANON | ECHO | ISIG));
}

static void terminal_read(int terminal, const char *wanted)
{
    char text[64] = "";

    CHECK(read_full(terminal, text, strlen(wanted)) == (ssize_t)strlen(wanted));
    CHECK_TEXT(text, wanted);
}

static void user_start_on_terminal(struct user *user, int *ret_terminal, const char *name)
{
    char *const environment[] = { host_variable, NULL };
    const char *const argv[] = { "holt", "run", name, NULL };
    struct winsize size = { .ws_row = 30, .ws_col = 100 };
    posix_spawn_file_actions_t files;
    int ours, theirs;

    CHECK(openpty(&ours, &theirs, NULL, NULL, &size) == 0);
    CHECK(posix_spawn_file_actions_init(&files) == 0);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        CHECK(posix_spawn_file_actions_adddup2(&files, theirs, fd) == 0);
    CHECK(posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1) == 0);
    CHECK(posix_spawn(&user->pid, binary, &files, NULL, (char *const *)(uintptr_t)argv,
                      environment) == 0);
    CHECK(posix_spawn_file_actions_destroy(&files) == 0);
    CHECK(close(theirs) == 0);
    *ret_terminal = ours;
}

static void a_terminal_is_passed_on_and_put_back(void)
{
    struct winsize size = { .ws_row = 40, .ws_col = 120 };
    struct user user;
    int terminal, status;

    user_start_on_terminal(&user, &terminal, "cat");
    while (!is_raw(terminal))
        (void)usleep(1000);
    CHECK(write(terminal, "\003", 1) == 1); /* a key that would be SIGINT */
    terminal_read(terminal, "\003");
    CHECK(pthread_mutex_lock(&last_run_lock) == 0);
    CHECK(strstr(last_run, "\"terminal\":{\"rows\":30,\"columns\":100}") != NULL);
    CHECK(pthread_mutex_unlock(&last_run_lock) == 0);
    CHECK(ioctl(terminal, TIOCSWINSZ, &size) == 0);
    CHECK(kill(user.pid, SIGWINCH) == 0);
    terminal_read(terminal, "40x120");
    CHECK(kill(user.pid, SIGTERM) == 0);
    CHECK(waitpid(user.pid, &status, 0) == user.pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM);
    CHECK(!is_raw(terminal));
    CHECK(close(terminal) == 0);
}

static void templates_are_listed_imported_and_removed(void)
{
    HOLT("template", "ls");
    CHECK_SEEN(0,
               "NAME    KIND         SIZE  SHARED  FILES  CREATED               DIGEST\n"
               "host    host            -       -      -  -                     -\n"
               "debian  imported  1.5 MiB     0 B     12  1970-01-02T00:00:00Z  -\n",
               "");
    HOLT("template", "ls", "-o", "json");
    CHECK(seen.status == 0 && seen.out[0] == '[' && strstr(seen.out, "\"1572864\""));
    HOLT("template", "import", "debian", "/tmp");
    CHECK_SEEN(0, "debian\n", "");
    HOLT("template", "import", "debian", "/nonexistent");
    CHECK_SEEN(125, "", "holt: template import: /nonexistent: No such file or directory\n");
    HOLT("template", "rm", "one", "busy", "two");
    CHECK_SEEN(8, "", "holt: 'busy' is in use\n");
    HOLT("template", "rm", "one");
    CHECK_SEEN(0, "", "");
}

static void a_daemon_that_is_named_is_not_started(void)
{
    char *before = host_variable;

    host_variable = xstrdup("HOLT_HOST=unix:///nonexistent/holt.sock");
    HOLT("run", "true");
    CHECK_SEEN(125, "",
               "holt: HOLT_HOST: no daemon answers at /nonexistent/holt.sock: "
               "No such file or directory\n");
    free(host_variable);
    host_variable = xstrdup("HOLT_HOST=tcp://x");
    HOLT("run", "true");
    CHECK(seen.status == 125 && strstr(seen.err, "'tcp://x' is not a daemon's address"));
    free(host_variable);
    host_variable = before;
}

static void all(void)
{
    find_binary();
    start_daemon();
    RUN(output_passes_through_byte_for_byte);
    RUN(options_become_the_request);
    RUN(an_outcome_that_the_status_hides_is_told);
    RUN(a_refusal_is_a_line_and_a_remedy_and_125);
    RUN(bad_words_are_one_line);
    RUN(stdin_reaches_the_process);
    RUN(an_open_stdin_does_not_delay_the_end);
    RUN(a_signal_is_passed_on);
    RUN(a_reader_that_leaves_ends_the_run);
    RUN(a_signal_is_served_while_the_reader_sleeps);
    RUN(a_terminal_is_passed_on_and_put_back);
    RUN(templates_are_listed_imported_and_removed);
    RUN(a_daemon_that_is_named_is_not_started);
    clean_up();
}

int main(void)
{
    RUN(all);
    return 0;
}
