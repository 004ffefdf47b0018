/* The new mount API as small honest calls. A mount is a descriptor until somebody attaches it, so
 * none can leak into a mount table. All return >= 0 or -errno. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mount_option {
    const char *key;
    const char *value; /* NULL: a flag */
};

/* A new, detached filesystem. attributes: MOUNT_ATTR_*. Returns its descriptor. */
int mount_new(const char *type, const struct mount_option *options, size_t count,
              uint64_t attributes);

/* A detached copy of the one mount, or with recursive of the whole tree, that path lies in, rooted
 * at path. An empty path means dir_fd itself. */
int mount_clone(int dir_fd, const char *path, bool recursive);

/* Sets attributes on a mount, or with recursive on all mounts below it too. */
int mount_set_attributes(int mount_fd, uint64_t attributes, bool recursive);

/* Takes attributes of one mount away. */
int mount_clear_attributes(int mount_fd, uint64_t attributes);

/* Maps the owners of files of a detached mount through a user namespace. */
int mount_set_idmap(int mount_fd, int userns_fd);

/* Attaches a mount, detached or not, on the directory or file that target_fd is. */
int mount_attach(int mount_fd, int target_fd);

/* Takes an attached mount, and all below it, out of this namespace. */
int mount_detach(int mount_fd);

/* Makes an overlay of lower layers (first is topmost), an upper and its work directory, detached,
 * with more options such as "volatile". */
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

/* Makes the mount at fd the root of this mount namespace, for every process in it whose root is the
 * present one, and drops the old root. fd must be attached. */
int mount_pivot(int root_fd);
