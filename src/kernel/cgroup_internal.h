/* What cgroup.c and cgroup_root.c share. */
#pragma once

#include <stdbool.h>

enum cgroup_controller { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU, CGROUP_CONTROLLERS };

struct cgroup_root {
    char *label;
    int unified_own_fd;            /* the daemon's own group, parent of the label's */
    int unified_fd;                /* the label's group on the unified hierarchy */
    bool has_v2[CGROUP_CONTROLLERS]; /* the controller works there */
    int v1_own_fd[CGROUP_CONTROLLERS];
    int v1_fd[CGROUP_CONTROLLERS]; /* the label's group in the controller's own hierarchy, or -1 */
};
