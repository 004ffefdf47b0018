/* Wrappers of the new mount API. A mount is a descriptor until it is attached, so none can leak
 * into a mount table. All return >= 0 or -errno. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mount_option {
    const char *key;
    const char *value; /* NULL: a flag */
};

/* Creates a detached filesystem and returns its descriptor. attributes are MOUNT_ATTR_*. */
int mount_new(const char *type, const struct mount_option *options, size_t count,
              uint64_t attributes);

/* Clones, detached, the mount that contains path, rooted at path; with recursive also the mounts
 * below. An empty path means dir_fd itself. */
int mount_clone(int dir_fd, const char *path, bool recursive);

/* Sets attributes of a mount; with recursive also of all mounts below. */
int mount_set_attributes(int mount_fd, uint64_t attributes, bool recursive);

/* Clears attributes of a mount. */
int mount_clear_attributes(int mount_fd, uint64_t attributes);

/* Makes the copies of an attached mount, in mount namespaces that are made from now on, get what is
 * mounted in it later. */
int mount_set_shared(int mount_fd);

/* Maps the owners of files in a detached mount through a user namespace. */
int mount_set_idmap(int mount_fd, int userns_fd);

/* Attaches a mount, detached or not, to the directory or file target_fd. */
int mount_attach(int mount_fd, int target_fd);

/* Unmounts an attached mount with everything below it. */
int mount_detach(int mount_fd);

/* Creates a detached overlay of lower layers (topmost first), an upper and its work directory,
 * with further options such as "volatile". */
struct overlay {
    const int *lower_fds;
    size_t lower_count;
    int upper_fd;
    int work_fd;
    const struct mount_option *options;
    size_t option_count;
    uint64_t attributes;
};
int mount_overlay(const struct overlay *overlay);

/* Makes the attached mount root_fd the root of this mount namespace, for every process whose root
 * is the current one, and unmounts the old root. */
int mount_pivot(int root_fd);
