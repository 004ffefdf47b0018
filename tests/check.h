/* The whole test harness: a test is a function named as the claim it checks. */
#pragma once

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ends the test program at the first broken claim, with the place and the reason. */
#define CHECK(claim, ...)                                                                          \
    do {                                                                                           \
        if (!(claim)) {                                                                            \
            (void)printf("not ok: %s:%d: %s", __FILE__, __LINE__, #claim);                         \
            (void)printf(" " __VA_ARGS__);                                                         \
            (void)printf("\n");                                                                    \
            (void)fflush(stdout); /* who is killed while it cleans up has said why */              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define CHECK_TEXT(got, wanted)                                                                    \
    CHECK(strcmp((got), (wanted)) == 0, "(got '%s', wanted '%s')", (got), (wanted))

/* Says why a test cannot run here; with TESTS_MUST_RUN=1, as in CI, that is a failure. */
#define SKIP(...)                                                                                  \
    do {                                                                                           \
        (void)printf("skip: %s: ", __func__);                                                      \
        (void)printf(__VA_ARGS__);                                                                 \
        (void)printf("\n");                                                                        \
        if (getenv("TESTS_MUST_RUN"))                                                              \
            exit(1);                                                                               \
        return;                                                                                    \
    } while (0)

#define RUN(test)                                                                                  \
    do {                                                                                           \
        test();                                                                                    \
        (void)printf("ok: %s\n", #test);                                                           \
        (void)fflush(stdout);                                                                      \
    } while (0)

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
