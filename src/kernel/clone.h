/* Starts a program in new namespaces, from a process of any size with any number of threads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { CLONE_EXEC_FDS_MAX = 4 };

struct clone_exec {
    uint64_t namespaces; /* CLONE_NEW* */
    int cgroup_fd;       /* cgroup2 directory to start in, or -1 */
    int program_fd;      /* program to execute */
    char *const *args;
    char *const *env;
    const int *fds; /* become 3, 4, ... in the program; all others are closed */
    size_t fd_count;
    bool is_sibling; /* creates a child of this process's parent, which then has to wait for it */
};

/* Executes the program with its capabilities in the new user namespace, before any uid is mapped
 * there: the caller writes the maps afterwards. Returns 0 once the program runs, or -errno of any
 * step including exec. */
int clone_exec(const struct clone_exec *spec, pid_t *ret_pid, int *ret_pidfd);
