// SPDX-License-Identifier: Apache-2.0
#include "store/volume/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/files/tree.h"
#include "kernel/btrfs.h"
#include "store/store_internal.h"

enum { OWN_GROUP = 0 }; /* of the subvolume that a call is made on */

bool scratch_has_quota(const struct store *store)
{
    enum btrfs_quota state = BTRFS_QUOTA_OFF;

    if (!is_btrfs(store->scratch_fd) || btrfs_quota_state(store->scratch_fd, &state) < 0)
        return false;
    if (state == BTRFS_QUOTA_OFF && store->image_fd >= 0 && btrfs_can_simple_quota())
        return btrfs_quota_enable(store->scratch_fd) == 0;
    return state == BTRFS_QUOTA_SIMPLE;
}

static int dir_make(const struct store *store, const char *id)
{
    int r = -ENOTTY;

    if (store->is_scratch_limited)
        r = btrfs_subvolume_make(store->scratch_fd, id, 0);
    /* A filesystem that limits the number of subvolumes still takes a directory. */
    if (r == -ENOTTY)
        r = mkdirat(store->scratch_fd, id, 0700) < 0 ? -errno : 0;
    return r;
}

int scratch_make(const struct store *store, const char *id)
{
    cleanup_close int fd = -EBADF;
    int r = dir_make(store, id);

    if (r < 0)
        return r;
    fd = openat(store->scratch_fd, id, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fchmod(fd, 0700) < 0)
        return -errno;
    return TAKE_FD(fd);
}

int scratch_limit(int dir_fd, uint64_t bytes)
{
    return btrfs_group_limit(dir_fd, OWN_GROUP, bytes);
}

int scratch_remove(const struct store *store, const char *id)
{
    int r = btrfs_subvolume_remove(store->scratch_fd, id);

    /* A plain directory, of this version or an earlier one. */
    return r == 0 || r == -ENOENT ? 0 : tree_remove_at(store->scratch_fd, id);
}
