/* btrfs: subvolumes, snapshots and simple quota as small honest calls. Each returns 0 or -errno.
 *
 * With simple quota (Linux 6.7) an extent is charged for good to the subvolume that first wrote it;
 * a snapshot costs what is written after it. A quota group counts what its members are charged
 * with. A subvolume that is gone stays a member while a snapshot still holds something it wrote:
 * only then, or when it is charged with nothing, can its own group be removed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the directory is on btrfs. */
bool is_btrfs(int dir_fd);

/* Makes an empty subvolume, a member of the group (0: of none). It is on disk when something in it
 * was synced, or half a minute later. */
int btrfs_subvolume_make(int dir_fd, const char *name, uint64_t group);

struct btrfs_snapshot {
    int from_fd; /* the subvolume to take */
    int dir_fd;  /* where it goes */
    const char *name;
    uint64_t group; /* 0: none */
    bool is_read_only;
};

/* Dirty data of the subvolume is in it, and it is on disk before this returns. */
int btrfs_snapshot_make(const struct btrfs_snapshot *snapshot);

/* Removes a subvolume, whatever is in it; its space comes back later. -ENOTTY when dir_fd is not on
 * btrfs, -EINVAL when name is no subvolume. */
int btrfs_subvolume_remove(int dir_fd, const char *name);

/* Writes out everything, so that the numbers of groups are those of now. */
int btrfs_sync(int fd);

enum btrfs_quota { BTRFS_QUOTA_OFF, BTRFS_QUOTA_SIMPLE, BTRFS_QUOTA_FULL };

int btrfs_quota_state(int fd, enum btrfs_quota *ret);

/* Whether this kernel knows simple quota. */
bool btrfs_can_simple_quota(void);
int btrfs_quota_enable(int fd);

/* The number of a group that holds subvolumes, from 48 bits of the caller's choice. */
uint64_t btrfs_group(uint64_t number);

int btrfs_group_make(int fd, uint64_t group); /* -EEXIST */
int btrfs_group_limit(int fd, uint64_t group, uint64_t bytes);
int btrfs_group_usage(int fd, uint64_t group, uint64_t *ret_bytes); /* -ENOENT */

/* Removes the groups of members that are gone and charged with nothing. */
int btrfs_group_prune(int fd, uint64_t group);

/* Removes the group itself: -EBUSY while it has members, -ENOENT. */
int btrfs_group_remove(int fd, uint64_t group);
