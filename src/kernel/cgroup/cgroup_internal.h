/* Internals shared by the files of the cgroup module. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { CGROUP_PATH_BYTES = 160, CGROUP_LOCATION_BYTES = 512 };

enum cgroup_controller { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU, CGROUP_CONTROLLERS };

/* Each controller may have its own hierarchy; the unified one follows them. */
enum { CGROUP_UNIFIED = CGROUP_CONTROLLERS, CGROUP_HIERARCHIES };
extern const char *const cgroup_hierarchy_names[CGROUP_HIERARCHIES];

/* Locations of groups: paths below the mount of each hierarchy; "" if there is none. */
struct cgroup_locations {
    char path[CGROUP_HIERARCHIES][CGROUP_LOCATION_BYTES];
};

/* Files of the label's group that every create reads, kept open: opening takes longer. */
enum cgroup_room {
    ROOM_MEMORY_USED,
    ROOM_MEMORY_LIMIT,
    ROOM_PIDS_USED,
    ROOM_PIDS_LIMIT,
    ROOM_FILES
};

struct cgroup_root {
    char *label;
    int unified_own_fd;  /* parent of the label's group: usually the daemon's own group */
    int unified_fd;      /* the label's group on the unified hierarchy */
    atomic_int spare_fd; /* closed to make room for the one descriptor that a kill needs */
    bool has_v2[CGROUP_CONTROLLERS]; /* the controller is available there */
    int v1_own_fd[CGROUP_CONTROLLERS];
    int v1_fd[CGROUP_CONTROLLERS]; /* the label's group in the controller's own hierarchy, or -1 */
    int room_fds[ROOM_FILES];      /* opened by cgroup_root_reserve */
};

/* Formats "NAME/FILE" or "NAME/CHILD/FILE", relative to a label's group. Names are chosen by Holt,
 * never by a client. */
const char *cgroup_path(char *into, const char *name, const char *child, const char *file);

/* Removes a group. Retries for a while, because a group may be busy for a moment after its last
 * process has ended. */
int cgroup_remove_dir(int root_fd, const char *path);

/* Removes the groups below a zygote's, which were made for children with limits. */
void cgroup_zygote_clear(struct cgroup_root *root, const char *zygote);

/* Removes the groups of a zygote on all hierarchies; -EBUSY if one is in use. Does not wait. */
int cgroup_zygote_try_remove(struct cgroup_root *root, const char *zygote);

/* Reads the locations written last; none if the file is missing or damaged. */
void cgroup_locations_read(const char *file, struct cgroup_locations *ret);

/* Replaces the file atomically. Returns 0 or -errno. */
int cgroup_locations_write(const char *file, const struct cgroup_locations *locations);

/* Waits until the events file of the group contains the event, or until the deadline. Returns 0,
 * -ETIMEDOUT or -errno. */
#define CGROUP_NO_DEADLINE UINT64_MAX
int cgroup_wait_event(struct cgroup_root *root, const char *name, const char *child,
                      const char *event, uint64_t deadline_ms);

int cgroup_set_frozen(struct cgroup_root *root, const char *name, const char *child, bool on);
