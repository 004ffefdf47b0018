// SPDX-License-Identifier: Apache-2.0
#include "guest/process/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

enum {
    MEMBERS_MAX = 8192,
    ROUNDS_MAX = 64, /* each finds a process that the one before did not see */
    STAT_BYTES = 512,
    STAT_PATH_BYTES = 32,
};

struct tree {
    pid_t pids[MEMBERS_MAX], sessions[MEMBERS_MAX];
    int count;
};

/* Reads the parent and the session from /proc/PID/stat: "1 (name) S 0 1 1 ...". */
static bool stat_read(pid_t pid, pid_t *ret_parent, pid_t *ret_session)
{
    char path[STAT_PATH_BYTES], text[STAT_BYTES], *at;
    cleanup_close int fd = -1;
    ssize_t n;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    at = strrchr(text, ')'); /* a name may contain anything */
    if (!at || strlen(at) < 4)
        return false;
    *ret_parent = (pid_t)strtol(at + 4, &at, 10);
    (void)strtol(at, &at, 10); /* the process group */
    *ret_session = (pid_t)strtol(at, NULL, 10);
    return true;
}

static bool tree_has(const struct tree *tree, pid_t pid)
{
    for (int i = 0; i < tree->count; i++)
        if (tree->pids[i] == pid)
            return true;
    return false;
}

static bool tree_has_session(const struct tree *tree, pid_t session)
{
    for (int i = 0; i < tree->count; i++)
        if (tree->sessions[i] == session)
            return true;
    return false;
}

/* Stops the members that are not known yet. Returns whether there were any. */
static bool tree_extend(struct tree *tree)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    bool is_new = false;

    while (dir && (entry = readdir(dir))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10), parent, session;

        if (pid <= 1 || pid == getpid() || tree_has(tree, pid) || tree->count == MEMBERS_MAX ||
            !stat_read(pid, &parent, &session) ||
            (!tree_has(tree, parent) && !tree_has_session(tree, session)))
            continue;
        (void)kill(pid, SIGSTOP);
        tree->pids[tree->count] = pid;
        tree->sessions[tree->count++] = session;
        is_new = true;
    }
    if (dir)
        (void)closedir(dir);
    return is_new;
}

void tree_signal(pid_t pid, int signal)
{
    static struct tree tree; /* static: too large for a small stack */

    tree.count = 1;
    tree.pids[0] = tree.sessions[0] = pid;
    (void)kill(pid, SIGSTOP);
    for (int i = 0; i < ROUNDS_MAX && tree_extend(&tree); i++)
        continue;
    for (int i = 0; i < tree.count; i++) {
        (void)kill(tree.pids[i], signal);
        if (signal != SIGKILL && signal != SIGSTOP)
            (void)kill(tree.pids[i], SIGCONT);
    }
}
