// SPDX-License-Identifier: Apache-2.0
#include "kernel/btrfs.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/text/hex.h"

/* Linux 6.7; older headers lack them. */
enum { ENABLE_SIMPLE_QUOTA = 4 };
static const uint64_t status_simple = 1ULL << 3;

static const uint64_t group_level = 1ULL << 48, group_mask = (1ULL << 48) - 1;

enum { MEMBERS_PER_READ = 64 };

/* struct btrfs_qgroup_inherit with room for one group. */
union inherit {
    struct btrfs_qgroup_inherit head;
    char bytes[sizeof(struct btrfs_qgroup_inherit) + sizeof(uint64_t)];
};

static int errno_result(int r)
{
    return r < 0 ? -errno : 0;
}

bool is_btrfs(int dir_fd)
{
    struct statfs info;

    return fstatfs(dir_fd, &info) == 0 && info.f_type == BTRFS_SUPER_MAGIC;
}

int btrfs_resize(int fd, uint64_t bytes)
{
    struct btrfs_ioctl_vol_args args = { .fd = 0 };

    (void)snprintf(args.name, sizeof(args.name), "%" PRIu64, bytes);
    return errno_result(ioctl(fd, BTRFS_IOC_RESIZE, &args));
}

/* Reads a number below the filesystem's directory in sysfs. */
static int sysfs_read(const unsigned char fsid[static BTRFS_FSID_SIZE], const char *name,
                      uint64_t *ret)
{
    char digits[HEX_SIZE(BTRFS_FSID_SIZE)], path[160];
    long long value = 0;
    int r;

    hex_encode(fsid, BTRFS_FSID_SIZE, digits);
    (void)snprintf(path, sizeof(path), "/sys/fs/btrfs/%.8s-%.4s-%.4s-%.4s-%.12s/%s", digits,
                   digits + 8, digits + 12, digits + 16, digits + 20, name);
    r = file_read_number_at(AT_FDCWD, path, &value);
    *ret = r == 0 && value > 0 ? (uint64_t)value : 0;
    return r;
}

int btrfs_sizes(int fd, uint64_t *ret_bytes, uint64_t *ret_promised)
{
    struct btrfs_ioctl_fs_info_args info = { .max_id = 0 };
    struct btrfs_ioctl_dev_info_args device = { .devid = 1 };

    if (ioctl(fd, BTRFS_IOC_FS_INFO, &info) < 0 || ioctl(fd, BTRFS_IOC_DEV_INFO, &device) < 0)
        return -errno;
    *ret_bytes = device.total_bytes;
    (void)sysfs_read(info.fsid, "allocation/data/bytes_may_use", ret_promised);
    return 0;
}

static int subvolume_create(int dir_fd, unsigned long request, struct btrfs_ioctl_vol_args_v2 *args,
                            const char *name, uint64_t group)
{
    union inherit inherit = { .head.num_qgroups = 1 };

    if (strlen(name) > BTRFS_SUBVOL_NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(args->name, name, strlen(name) + 1);
    if (group) {
        inherit.head.qgroups[0] = group;
        args->flags |= BTRFS_SUBVOL_QGROUP_INHERIT;
        args->size = sizeof(inherit);
        args->qgroup_inherit = &inherit.head;
    }
    return errno_result(ioctl(dir_fd, request, args));
}

int btrfs_subvolume_make(int dir_fd, const char *name, uint64_t group)
{
    struct btrfs_ioctl_vol_args_v2 args = { 0 };

    return subvolume_create(dir_fd, BTRFS_IOC_SUBVOL_CREATE_V2, &args, name, group);
}

int btrfs_snapshot_make(const struct btrfs_snapshot *snapshot)
{
    struct btrfs_ioctl_vol_args_v2 args = {
        .fd = snapshot->from_fd,
        .flags = snapshot->is_read_only ? BTRFS_SUBVOL_RDONLY : 0,
    };

    return subvolume_create(snapshot->dir_fd, BTRFS_IOC_SNAP_CREATE_V2, &args, snapshot->name,
                            snapshot->group);
}

int btrfs_subvolume_remove(int dir_fd, const char *name)
{
    struct btrfs_ioctl_vol_args args = { 0 };

    if (strlen(name) > BTRFS_PATH_NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(args.name, name, strlen(name) + 1);
    return errno_result(ioctl(dir_fd, BTRFS_IOC_SNAP_DESTROY, &args));
}

static struct btrfs_ioctl_search_key quota_key(uint64_t object, uint32_t type)
{
    return (struct btrfs_ioctl_search_key){
        .tree_id = BTRFS_QUOTA_TREE_OBJECTID,
        .min_objectid = object,
        .max_objectid = object,
        .max_offset = UINT64_MAX,
        .max_transid = UINT64_MAX,
        .min_type = type,
        .max_type = type,
        .nr_items = 1,
    };
}

/* Reads the only item of a key, of at least size bytes. */
static int item_read(int fd, const struct btrfs_ioctl_search_key *key, void *ret, size_t size)
{
    struct btrfs_ioctl_search_args args = { .key = *key };
    struct btrfs_ioctl_search_header header;

    if (ioctl(fd, BTRFS_IOC_TREE_SEARCH, &args) < 0)
        return -errno; /* ENOENT: no quota tree, so quotas are off */
    memcpy(&header, args.buf, sizeof(header));
    if (args.key.nr_items == 0 || header.len < size)
        return -ENOENT;
    memcpy(ret, args.buf + sizeof(header), size);
    return 0;
}

int btrfs_quota_state(int fd, enum btrfs_quota *ret)
{
    const struct btrfs_ioctl_search_key key = quota_key(0, BTRFS_QGROUP_STATUS_KEY);
    struct btrfs_qgroup_status_item status = { .flags = 0 };
    int r = item_read(fd, &key, &status, sizeof(status));

    if (r < 0 && r != -ENOENT)
        return r;
    if (r == -ENOENT || !(le64toh(status.flags) & BTRFS_QGROUP_STATUS_FLAG_ON))
        *ret = BTRFS_QUOTA_OFF;
    else
        *ret = le64toh(status.flags) & status_simple ? BTRFS_QUOTA_SIMPLE : BTRFS_QUOTA_FULL;
    return 0;
}

bool btrfs_can_simple_quota(void)
{
    return access("/sys/fs/btrfs/features/simple_quota", F_OK) == 0;
}

int btrfs_quota_enable(int fd)
{
    struct btrfs_ioctl_quota_ctl_args args = { .cmd = ENABLE_SIMPLE_QUOTA };

    return errno_result(ioctl(fd, BTRFS_IOC_QUOTA_CTL, &args));
}

uint64_t btrfs_group(uint64_t number)
{
    return group_level | (number & group_mask);
}

int btrfs_group_make(int fd, uint64_t group)
{
    struct btrfs_ioctl_qgroup_create_args args = { .create = 1, .qgroupid = group };

    return errno_result(ioctl(fd, BTRFS_IOC_QGROUP_CREATE, &args));
}

int btrfs_group_remove(int fd, uint64_t group)
{
    struct btrfs_ioctl_qgroup_create_args args = { .create = 0, .qgroupid = group };

    return errno_result(ioctl(fd, BTRFS_IOC_QGROUP_CREATE, &args));
}

int btrfs_group_limit(int fd, uint64_t group, uint64_t bytes)
{
    struct btrfs_ioctl_qgroup_limit_args args = {
        .qgroupid = group,
        .lim = { .flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = bytes },
    };

    return errno_result(ioctl(fd, BTRFS_IOC_QGROUP_LIMIT, &args));
}

int btrfs_group_usage(int fd, uint64_t group, uint64_t *ret_bytes)
{
    struct btrfs_ioctl_search_key key = quota_key(0, BTRFS_QGROUP_INFO_KEY);
    struct btrfs_qgroup_info_item info = { .rfer = 0 };
    int r;

    key.min_offset = key.max_offset = group;
    r = item_read(fd, &key, &info, sizeof(info));
    if (r == 0)
        *ret_bytes = le64toh(info.rfer);
    return r;
}

int btrfs_group_charge(int fd, uint64_t group, uint64_t *ret_bytes)
{
    struct btrfs_ioctl_fs_info_args info = { .max_id = 0 };
    uint64_t written = 0, promised = 0;
    char name[64];
    int r;

    if (ioctl(fd, BTRFS_IOC_FS_INFO, &info) < 0)
        return -errno;
    (void)snprintf(name, sizeof(name), "qgroups/%" PRIu64 "_%" PRIu64 "/referenced",
                   group / group_level, group & group_mask);
    r = sysfs_read(info.fsid, name, &written);
    if (r < 0)
        return r;
    (void)snprintf(name, sizeof(name), "qgroups/%" PRIu64 "_%" PRIu64 "/rsv_data",
                   group / group_level, group & group_mask);
    r = sysfs_read(info.fsid, name, &promised);
    *ret_bytes = written + promised;
    return r;
}

/* Reads up to MEMBERS_PER_READ members of a group, from id `first` on. Returns their number or
 * -errno. */
static int members_read(int fd, uint64_t group, uint64_t first, uint64_t members[])
{
    struct btrfs_ioctl_search_args args = { .key = quota_key(group, BTRFS_QGROUP_RELATION_KEY) };
    struct btrfs_ioctl_search_header header;
    size_t at = 0;

    args.key.min_offset = first;
    args.key.max_offset = group_mask; /* groups have ids above this */
    args.key.nr_items = MEMBERS_PER_READ;
    if (ioctl(fd, BTRFS_IOC_TREE_SEARCH, &args) < 0)
        return -errno;
    for (uint32_t i = 0; i < args.key.nr_items; i++) {
        memcpy(&header, args.buf + at, sizeof(header));
        members[i] = header.offset;
        at += sizeof(header) + header.len;
    }
    return (int)args.key.nr_items;
}

int btrfs_group_prune(int fd, uint64_t group)
{
    uint64_t members[MEMBERS_PER_READ] = { 0 }, bytes, next = 0;
    int count;

    do {
        count = members_read(fd, group, next, members);
        for (int i = 0; i < count; i++) {
            /* The kernel refuses if the subvolume still exists. */
            if (btrfs_group_usage(fd, members[i], &bytes) == 0 && bytes == 0)
                (void)btrfs_group_remove(fd, members[i]);
            next = members[i] + 1;
        }
    } while (count == MEMBERS_PER_READ);
    return count < 0 ? count : 0;
}
