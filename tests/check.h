/* The whole test harness: a test is a function named as the claim it checks.
 *
 * RUN(test) in main() runs it in a child process, so that a broken claim or a crash ends that test
 * alone. The program exits with 1 if any test failed, whatever main() returns.
 *
 * Tests that share a fixture are parts of one test, which makes the fixture, calls RUN() for each
 * part and removes the fixture. The parts run one after the other in the same child. After one that
 * fails, a new child makes the fixture again and goes on with the next part. */
#pragma once

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void test_fn(void);
/* Runs the test and checks more, such as what it left behind. */
typedef void test_around_fn(test_fn *test);

/* What the child of a test tells its parent. */
struct test_report {
    char part[256];  /* that runs now, or "" */
    unsigned begun;  /* parts, with those that an earlier child has run */
    bool is_done;    /* the test has returned */
    bool is_told;    /* why it failed was printed */
    bool is_skipped; /* the reason was printed */
};

static struct {
    struct test_report *report;
    pid_t main_pid;
    const char *test;
    bool is_child, has_failed;
    unsigned parts;      /* RUN()s that this child came to */
    unsigned parts_done; /* those among them that earlier children have run */
} test_state;

/* --- claims ---------------------------------------------------------------------------------- */

__attribute__((noreturn, format(printf, 4, 5))) static inline void
test_fail(const char *file, int line, const char *claim, const char *format, ...)
{
    const char *name =
        test_state.report->part[0] != '\0' ? test_state.report->part : test_state.test;
    va_list args;

    test_state.report->is_told = true;
    (void)printf("not ok: %s: %s:%d: %s", name ? name : "main", file, line, claim);
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    (void)printf("\n");
    (void)fflush(stdout); /* a signal may end the process while it cleans up */
    exit(1);
}

/* Ends the test at the first broken claim, with the place and the reason. */
#define CHECK(claim, ...)                                                                          \
    do {                                                                                           \
        if (!(claim))                                                                              \
            test_fail(__FILE__, __LINE__, #claim, " " __VA_ARGS__);                                \
    } while (0)

#define CHECK_TEXT(got, wanted)                                                                    \
    CHECK(strcmp((got), (wanted)) == 0, "(got '%s', wanted '%s')", (got), (wanted))

/* Prints why a test cannot run here; with TESTS_MUST_RUN=1, as in CI, that is a failure. */
__attribute__((format(printf, 1, 2))) static inline void test_skip(const char *format, ...)
{
    va_list args;

    test_state.report->is_skipped = true;
    (void)printf("skip: ");
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    (void)printf("\n");
    (void)fflush(stdout);
    if (getenv("TESTS_MUST_RUN"))
        exit(1);
}

#define TEST_SKIP(format, ...) test_skip("%s: " format, __func__, ##__VA_ARGS__)
#define SKIP(...)                                                                                  \
    do {                                                                                           \
        TEST_SKIP(__VA_ARGS__);                                                                    \
        return;                                                                                    \
    } while (0)

/* --- tests ----------------------------------------------------------------------------------- */

static inline void test_exit(void)
{
    if (test_state.has_failed && getpid() == test_state.main_pid) {
        (void)fflush(NULL);
        _exit(1);
    }
}

__attribute__((constructor)) static void test_begin(void)
{
    test_state.main_pid = getpid();
    test_state.report = mmap(NULL, sizeof(*test_state.report), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (test_state.report == MAP_FAILED || atexit(test_exit) != 0)
        abort();
    /* Nothing is lost in a buffer when a signal ends a test. */
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
}

static inline void test_call(test_fn *test, test_around_fn *around)
{
    if (around)
        around(test);
    else
        test();
}

static inline void test_part(const char *name, test_fn *test, test_around_fn *around)
{
    if (test_state.parts++ < test_state.parts_done)
        return;
    test_state.report->begun = test_state.parts;
    test_state.report->is_skipped = false;
    (void)snprintf(test_state.report->part, sizeof(test_state.report->part), "%s", name);
    test_call(test, around);
    if (!test_state.report->is_skipped)
        (void)printf("ok: %s\n", name);
    test_state.report->is_skipped = false;
    test_state.report->part[0] = '\0';
}

/* Waits for a child, which is killed after TEST_SECONDS, if there is such a limit. */
static inline int test_wait(pid_t pid, bool *ret_is_late)
{
    const char *limit = getenv("TEST_SECONDS");
    struct pollfd child = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
    int status = 0;

    *ret_is_late = limit && child.fd >= 0 &&
                   poll(&child, 1, (int)strtol(limit, NULL, 10) * 1000) == 0 &&
                   kill(pid, SIGKILL) == 0;
    (void)close(child.fd);
    if (waitpid(pid, &status, 0) != pid)
        abort();
    return status;
}

/* Whether the child did all that it had to; if not, that has been printed. */
static inline bool test_judge(const char *name, int status, bool is_late)
{
    const struct test_report *report = test_state.report;

    if (report->part[0] != '\0')
        name = report->part;
    if (WIFSIGNALED(status) && is_late)
        (void)printf("not ok: %s: did not end within %s s\n", name, getenv("TEST_SECONDS"));
    else if (WIFSIGNALED(status))
        (void)printf("not ok: %s: killed by signal %d (%s)\n", name, WTERMSIG(status),
                     strsignal(WTERMSIG(status)));
    else if (report->is_skipped || report->is_told)
        return status == 0 && !report->is_told;
    else if (status != 0 || !report->is_done)
        (void)printf("not ok: %s: ended with exit status %d\n", name, WEXITSTATUS(status));
    else
        return true;
    return false;
}

/* Runs a test, or those parts of it that are left, in a child: whether that passed. */
static inline bool test_child(const char *name, test_fn *test, test_around_fn *around)
{
    bool is_late;
    int status;
    pid_t pid;

    *test_state.report = (struct test_report){ .begun = test_state.parts_done };
    (void)fflush(NULL);
    pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0) {
        test_state.is_child = true;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        test_call(test, around);
        test_state.report->is_done = true;
        exit(0); /* with the leak check of a sanitizer */
    }
    status = test_wait(pid, &is_late);
    return test_judge(name, status, is_late);
}

/* Runs a test in a child, or here if this is one already. */
static inline void test_run(const char *name, test_fn *test, test_around_fn *around)
{
    bool has_passed = true, is_over;

    if (test_state.is_child) {
        test_part(name, test, around);
        return;
    }
    test_state.test = name;
    test_state.parts_done = 0;
    do {
        is_over = test_child(name, test, around);
        has_passed = has_passed && is_over;
        is_over = is_over || test_state.report->begun == test_state.parts_done;
        test_state.parts_done = test_state.report->begun;
    } while (!is_over);
    if (has_passed && !test_state.report->is_skipped)
        (void)printf("ok: %s\n", name);
    test_state.has_failed = test_state.has_failed || !has_passed;
    test_state.test = NULL;
    *test_state.report = (struct test_report){ 0 };
}

#define RUN(test) test_run(#test, test, NULL)

/* Returns the path of `name` in the directory that the programs were built into: build/, for
 * build/tests/unit/MODULE/..._test. Valid until the next call. */
static inline const char *build_path(const char *name)
{
    static char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    char *tests = NULL;

    CHECK(len > 0);
    path[len] = '\0';
    for (char *at = path; (at = strstr(at, "/tests/")); at++)
        tests = at;
    CHECK(tests, "(%s)", path);
    (void)snprintf(tests + 1, sizeof(path) - (size_t)(tests + 1 - path), "%s", name);
    return path;
}
