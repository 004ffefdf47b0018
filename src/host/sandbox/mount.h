/* Shared volumes that are mounted in sandboxes. A mount is the sandbox's for life: it is there
 * again whenever the sandbox gets a root, and a fork has it too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;
struct host;
struct sandbox_info;
struct sandbox_mount;

/* Fills one in. ERR_INVALID for a path that is not absolute, has "." or ".." in it, is too long, or
 * is where Holt has mounts of its own. The path is kept without needless slashes. */
int sandbox_mount_init(struct sandbox_mount *mount, const char *shared_volume, const char *path,
                       struct err *err);

/* Checks several together, and sorts them so that none covers one before it. ERR_INVALID when there
 * are too many, or two at one path. */
int sandbox_mounts_check(struct sandbox_mount *mounts, size_t count, struct err *err);

/* While a shared volume is being made or removed nobody gets it mounted, and nobody else removes
 * it. */
struct shared_volume_removal {
    const char *shared_volume;
    struct shared_volume_removal *next;
};

/* ERR_BUSY when some sandbox, in whatever state, has it mounted, or it is doomed already. */
int shared_volume_removal_begin(struct host *host, struct shared_volume_removal *removal,
                                struct err *err);
void shared_volume_removal_end(struct host *host, struct shared_volume_removal *removal);

/* Whether one of its mounts is being removed. The host is locked. */
bool sandbox_mounts_are_being_removed(const struct host *host, const struct sandbox_info *info);
