/* Wrappers of btrfs calls: subvolumes, snapshots and simple quotas. Each returns 0 or -errno.
 *
 * With simple quotas (Linux 6.7) an extent is charged permanently to the subvolume that first
 * wrote it; a snapshot is charged for what is written after it. A quota group counts the charges
 * of its members. A removed subvolume stays a member while a snapshot still shares an extent that
 * it wrote; its own group can be removed only once it is charged with nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns whether the directory is on btrfs. */
bool is_btrfs(int dir_fd);

/* Creates an empty subvolume that is a member of the group (0: of none). It is durable once a file
 * in it is synced, or after 30 s. */
int btrfs_subvolume_make(int dir_fd, const char *name, uint64_t group);

struct btrfs_snapshot {
    int from_fd; /* source subvolume */
    int dir_fd;  /* parent directory of the snapshot */
    const char *name;
    uint64_t group; /* 0: none */
    bool is_read_only;
};

/* Takes a snapshot that includes the dirty data of the subvolume and is durable on return. */
int btrfs_snapshot_make(const struct btrfs_snapshot *snapshot);

/* Removes a subvolume with its contents; the space is freed later. -ENOTTY if dir_fd is not on
 * btrfs, -EINVAL if name is not a subvolume. */
int btrfs_subvolume_remove(int dir_fd, const char *name);

/* Makes the filesystem, which has one device, this large, at most as large as the device. -ENOSPC
 * if what it has does not fit. */
int btrfs_resize(int fd, uint64_t bytes);

/* Reads the size of the filesystem's device as the filesystem uses it, and the bytes of data that
 * are promised to writers and not in its statfs(2) yet. */
int btrfs_sizes(int fd, uint64_t *ret_bytes, uint64_t *ret_promised);

enum btrfs_quota { BTRFS_QUOTA_OFF, BTRFS_QUOTA_SIMPLE, BTRFS_QUOTA_FULL };

int btrfs_quota_state(int fd, enum btrfs_quota *ret);

/* Returns whether this kernel supports simple quotas. */
bool btrfs_can_simple_quota(void);
int btrfs_quota_enable(int fd);

/* Returns the id of a group for subvolumes, made from 48 bits that the caller chooses. */
uint64_t btrfs_group(uint64_t number);

int btrfs_group_make(int fd, uint64_t group); /* -EEXIST */
#define BTRFS_NO_LIMIT UINT64_MAX
int btrfs_group_limit(int fd, uint64_t group, uint64_t bytes);

/* Reads what the group was charged with at the last commit. -ENOENT if there is no such group. */
int btrfs_group_usage(int fd, uint64_t group, uint64_t *ret_bytes);

/* Reads what the kernel compares with the limit: what is written and what writers were promised.
 * Removed files count until the next commit. Needs sysfs and causes no commit. */
int btrfs_group_charge(int fd, uint64_t group, uint64_t *ret_bytes);

/* Removes the groups of members that no longer exist and are charged with nothing. */
int btrfs_group_prune(int fd, uint64_t group);

/* Removes the group itself. -EBUSY while it has members, -ENOENT. */
int btrfs_group_remove(int fd, uint64_t group);
