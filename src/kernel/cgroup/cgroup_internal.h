/* What the files of the cgroup module share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CGROUP_PATH_BYTES = 160, CGROUP_PLACE_BYTES = 512 };

enum cgroup_controller { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU, CGROUP_CONTROLLERS };

/* Each controller may have a hierarchy of its own; the unified one comes behind them. */
enum { CGROUP_UNIFIED = CGROUP_CONTROLLERS, CGROUP_HIERARCHIES };
extern const char *const cgroup_hierarchy_names[CGROUP_HIERARCHIES];

/* Groups by their paths below the mount of each hierarchy; "" where there is none. */
struct cgroup_places {
    char path[CGROUP_HIERARCHIES][CGROUP_PLACE_BYTES];
};

struct cgroup_root {
    char *label;
    int unified_own_fd;              /* the parent of the label's: mostly the daemon's own group */
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

/* Removes the groups below those of a zygote, of children that had limits. */
void cgroup_zygote_clear(struct cgroup_root *root, const char *zygote);

/* What was written there last; nothing when the file is missing or damaged. */
void cgroup_places_read(const char *file, struct cgroup_places *ret);

/* Replaces the file as a whole: 0 or -errno. */
int cgroup_places_write(const char *file, const struct cgroup_places *places);

uint64_t cgroup_clock_ms(void);

/* Waits until the events file of the group says so, or until the clock does: 0 or -ETIMEDOUT. */
#define CGROUP_NO_DEADLINE UINT64_MAX
int cgroup_wait_event(struct cgroup_root *root, const char *name, const char *child,
                      const char *event, uint64_t deadline_ms);

int cgroup_set_frozen(struct cgroup_root *root, const char *name, const char *child, bool on);
