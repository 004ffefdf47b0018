/* Shared volumes mounted in sandboxes. A mount lasts as long as its sandbox: every new root of
 * the sandbox has it, and so has every fork. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;
struct host;
struct sandbox;
struct sandbox_info;
struct sandbox_mount;

/* Fills in a mount that can be written to; redundant slashes are removed from its path. ERR_INVALID
 * for a path that is relative, contains "." or "..", is too long, or is below a mount of Holt. */
int sandbox_mount_init(struct sandbox_mount *mount, const char *shared_volume, const char *path,
                       struct err *err);

/* Checks the mounts of one sandbox and sorts them so that none hides an earlier one. ERR_INVALID
 * if there are too many, or two at the same path. */
int sandbox_mounts_check(struct sandbox_mount *mounts, size_t count, struct err *err);

/* Prevents new mounts and other removals of a shared volume or codebase (by id) while it is being
 * created or removed. */
struct shared_volume_removal {
    const char *shared_volume;
    struct shared_volume_removal *next;
};

/* Returns ERR_BUSY if any sandbox, in any state, has the volume mounted, or another removal is
 * active. */
int shared_volume_removal_begin(struct host *host, struct shared_volume_removal *removal,
                                struct err *err);
void shared_volume_removal_end(struct host *host, struct shared_volume_removal *removal);

/* Returns whether one of the sandbox's volumes is being removed. The caller holds the host's
 * lock. */
bool sandbox_mounts_are_being_removed(const struct host *host, const struct sandbox_info *info);

/* Makes every removal of a volume of info fail until sandbox_mounts_release, or until info has been
 * exchanged with the sandbox's own, which keeps its mounts meanwhile. ERR_NOT_FOUND if one of the
 * volumes is gone or is being removed. The caller runs an operation. */
int sandbox_mounts_reserve(struct sandbox *sandbox, const struct sandbox_info *info,
                           struct err *err);
void sandbox_mounts_release(struct sandbox *sandbox);
