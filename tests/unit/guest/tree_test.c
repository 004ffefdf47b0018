// SPDX-License-Identifier: Apache-2.0
/* Signals to a process and all that it has started, without control groups. */
#include <errno.h>
#include <sys/wait.h>

#include "check.h"
#include "guest/process/tree.c" /* NOLINT(bugprone-suspicious-include) */

enum { DEPTH = 3, WIDTH = 3 };

/* Starts children in sessions of their own, and they do the same, down to a depth. Then each tells
 * its pid and waits for signals. */
static void descend(int told_fd)
{
    pid_t self;

    for (int depth = DEPTH, i = 0; depth >= 0; i++) {
        if (i == 0)
            (void)setsid();
        if (i == WIDTH || depth == 0)
            break;
        if (fork() == 0) {
            depth--;
            i = -1;
        }
    }
    self = getpid();
    if (write(told_fd, &self, sizeof(self)) != sizeof(self))
        _exit(1);
    for (;;)
        (void)pause();
}

static int tree_start(pid_t pids[64])
{
    int told[2], count = 1, expected = 0;

    for (int i = 0, level = 1; i <= DEPTH; i++, level *= WIDTH)
        expected += level;
    CHECK(pipe(told) == 0);
    /* What loses its parents comes to this process, as to an init. */
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    pids[0] = fork();
    CHECK(pids[0] >= 0);
    if (pids[0] == 0)
        descend(told[1]);
    for (int i = 0; i < expected; i++) {
        pid_t pid;

        CHECK(read(told[0], &pid, sizeof(pid)) == sizeof(pid));
        if (pid != pids[0])
            pids[count++] = pid;
    }
    CHECK(count == expected);
    return count;
}

static void wait_all(int count, int signal)
{
    for (int i = 0; i < count; i++) {
        int status;

        CHECK(wait(&status) > 0 && WIFSIGNALED(status) && WTERMSIG(status) == signal);
    }
    CHECK(wait(NULL) < 0 && errno == ECHILD);
}

static void every_descendant_is_killed_whatever_its_session(void)
{
    pid_t pids[64];
    int count = tree_start(pids);

    tree_signal(pids[0], SIGKILL);
    wait_all(count, SIGKILL);
}

static void a_signal_that_ends_nothing_at_once_lets_all_go_on(void)
{
    pid_t pids[64];
    int count = tree_start(pids), status;

    tree_signal(pids[0], SIGWINCH); /* ignored */
    for (int i = 0; i < count; i++)
        CHECK(kill(pids[i], 0) == 0);
    CHECK(waitpid(pids[0], &status, WNOHANG | WUNTRACED) == 0);
    tree_signal(pids[0], SIGTERM);
    wait_all(count, SIGTERM);
}

static void other_processes_are_left_alone(void)
{
    pid_t pids[64], other = fork();
    int count, status;

    if (other == 0)
        for (;;)
            (void)pause();
    count = tree_start(pids);
    tree_signal(pids[0], SIGKILL);
    for (int i = 0; i < count; i++)
        CHECK(wait(&status) != other);
    CHECK(kill(other, 0) == 0 && kill(other, SIGKILL) == 0);
    CHECK(waitpid(other, &status, 0) == other);
}

int main(void)
{
    RUN(every_descendant_is_killed_whatever_its_session);
    RUN(a_signal_that_ends_nothing_at_once_lets_all_go_on);
    RUN(other_processes_are_left_alone);
    return 0;
}
