/* What the files of the cgroup module share. */
#pragma once

#include <stdbool.h>

enum { CGROUP_PATH_BYTES = 160 };

enum cgroup_controller { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU, CGROUP_CONTROLLERS };

struct cgroup_root {
    char *label;
    int unified_own_fd;              /* the daemon's own group, parent of the label's */
    int unified_fd;                  /* the label's group on the unified hierarchy */
    bool has_v2[CGROUP_CONTROLLERS]; /* the controller works there */
    int v1_own_fd[CGROUP_CONTROLLERS];
    int v1_fd[CGROUP_CONTROLLERS]; /* the label's group in the controller's own hierarchy, or -1 */
};

/* "NAME/FILE" or "NAME/CHILD/FILE", relative to a label's group. Names are our own, never a
 * client's. */
const char *cgroup_path(char *into, const char *name, const char *child, const char *file);

/* A group may be busy for an instant after its last process was seen to end: tries for a while. */
int cgroup_remove_dir(int root_fd, const char *path);
