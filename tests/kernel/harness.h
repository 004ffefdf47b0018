/* What tests on the real kernel share: each test must leave the machine as it found it. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum {
    PATIENCE_MS = 300 * 1000, /* against a test that hangs, not a speed limit */
    POLL_MS = 5,
};

/* Entries of a directory without "." and "..". */
static inline size_t count_entries(const char *path)
{
    DIR *dir = opendir(path);
    size_t count = 0;

    CHECK(dir, "(%s: %s)", path, strerror(errno));
    while (readdir(dir))
        count++;
    (void)closedir(dir);
    return count - 2;
}

static inline size_t count_lines(const char *path)
{
    FILE *file = fopen(path, "re");
    size_t count = 0;
    int c;

    CHECK(file, "(%s: %s)", path, strerror(errno));
    while ((c = fgetc(file)) != EOF)
        count += c == '\n';
    (void)fclose(file);
    return count;
}

/* Of all threads: when one ends, its children become another's. */
static inline size_t count_children(void)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *task;
    size_t count = 0;

    CHECK(tasks, "(/proc/self/task: %s)", strerror(errno));
    while ((task = readdir(tasks))) {
        char path[sizeof("/proc/self/task//children") + sizeof(task->d_name)];
        FILE *file;
        int c;

        (void)snprintf(path, sizeof(path), "/proc/self/task/%s/children", task->d_name);
        file = task->d_name[0] == '.' ? NULL : fopen(path, "re");
        while (file && (c = fgetc(file)) != EOF)
            count += c == ' ';
        if (file)
            (void)fclose(file);
    }
    (void)closedir(tasks);
    return count;
}

static size_t groups_found;
static const char *group_word;

static inline int count_group(const char *path, const struct stat *info, int type,
                              struct FTW *where)
{
    (void)info, (void)where;
    if (type == FTW_D && strstr(path, group_word))
        groups_found++;
    return 0;
}

/* How many control groups have the word in their path. */
static inline size_t groups_with(const char *word)
{
    group_word = word;
    groups_found = 0;
    (void)nftw("/sys/fs/cgroup", count_group, 16, FTW_PHYS);
    return groups_found;
}

struct host_counts {
    size_t fds, mounts, children;
};

static inline struct host_counts host_count(void)
{
    return (struct host_counts){
        .fds = count_entries("/proc/self/fd"),
        .mounts = count_lines("/proc/self/mountinfo"),
        .children = count_children(),
    };
}

static inline void pause_ms(long ms)
{
    const struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

    (void)nanosleep(&pause, NULL);
}

/* Polls until the condition holds; ends the test when it never does. */
#define EVENTUALLY(condition)                                                                      \
    do {                                                                                           \
        for (int waited_ = 0; !(condition); waited_ += POLL_MS) {                                  \
            CHECK(waited_ < PATIENCE_MS, "(never came true: %s)", #condition);                     \
            pause_ms(POLL_MS);                                                                     \
        }                                                                                          \
    } while (0)

/* Runs a test and compares what this process and host have with what they had before. */
static inline void run_clean(test_fn *test)
{
    struct host_counts before = host_count(), after;

    test();
    after = host_count();
    CHECK(after.fds == before.fds, "(%zu descriptors, then %zu)", before.fds, after.fds);
    CHECK(after.mounts == before.mounts, "(%zu mounts, then %zu)", before.mounts, after.mounts);
    CHECK(after.children == before.children, "(%zu children, then %zu)", before.children,
          after.children);
}

#define RUN_CLEAN(test) test_run(#test, test, run_clean)

static inline void must_be_root(void)
{
    if (geteuid() == 0)
        return;
    test_skip("tests on the kernel need root");
    exit(0);
}
