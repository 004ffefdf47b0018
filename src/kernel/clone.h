/* Starts a program in new namespaces, from a process of any size and any number of threads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { CLONE_EXEC_FDS_MAX = 4 };

struct clone_exec {
    uint64_t namespaces; /* CLONE_NEW* */
    int cgroup_fd;       /* directory on cgroup2 to be born in, or -1 */
    int program_fd;      /* what to run */
    char *const *args;
    char *const *env;
    const int *fds; /* appear as 3, 4, ... in the program; everything else is closed */
    size_t fd_count;
    bool is_sibling; /* a child of this process's parent, who is then to wait for it */
};

/* Runs the program with its capabilities in the new user namespace kept although no uid is mapped
 * there yet: the caller writes the maps afterwards. Returns 0 once the program runs, or -errno of
 * whatever failed, exec included. */
int clone_exec(const struct clone_exec *spec, pid_t *ret_pid, int *ret_pidfd);
