// SPDX-License-Identifier: Apache-2.0
/* Measures the cost of a snapshot in the kernel: BTRFS_IOC_SNAP_CREATE_V2 in a loop. Prints one
 * line of microseconds per sample.
 *
 * usage: btrfs_snapshot [-c KIB] [-m MANY] COUNT DIR
 *        btrfs_snapshot -q DIR
 *
 * DIR has a subvolume "live". -c rewrites that many KiB in live/changed before each snapshot,
 * outside the measured time. Snapshots are kept, read-only, in DIR; with -m a sample is that many
 * writable snapshots, which are removed. -q enables simple quotas, which btrfs-progs of Debian 12
 * does not support. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "clock.h"

enum { ENABLE_SIMPLE_QUOTA = 4, BLOCK_BYTES = 1 << 20 };

struct bench {
    int dir_fd;
    int live_fd;
    long changed_kib;
    long many; /* 0: one, which is kept */
};

static void enable_quota(int dir_fd)
{
    struct btrfs_ioctl_quota_ctl_args args = { .cmd = ENABLE_SIMPLE_QUOTA };

    if (ioctl(dir_fd, BTRFS_IOC_QUOTA_CTL, &args) < 0)
        err(1, "turn on simple quota");
}

/* Writes like dd in the sandboxes that this is compared with. */
static void change(const struct bench *bench)
{
    static char block[BLOCK_BYTES];
    size_t left = (size_t)bench->changed_kib * 1024;
    int fd;

    if (left == 0)
        return;
    fd = openat(bench->live_fd, "changed", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        err(1, "open 'changed'");
    while (left > 0) {
        size_t part = left < sizeof(block) ? left : sizeof(block);

        if (write(fd, block, part) != (ssize_t)part)
            err(1, "write 'changed'");
        left -= part;
    }
    (void)close(fd);
}

static void name_of(char name[static BTRFS_SUBVOL_NAME_MAX + 1], long sample, long number)
{
    (void)snprintf(name, BTRFS_SUBVOL_NAME_MAX + 1, "snapshot-%d-%ld-%ld", (int)getpid(), sample,
                   number);
}

static void snapshot(const struct bench *bench, long sample, long number)
{
    struct btrfs_ioctl_vol_args_v2 args = {
        .fd = bench->live_fd,
        .flags = bench->many ? 0 : BTRFS_SUBVOL_RDONLY,
    };

    name_of(args.name, sample, number);
    if (ioctl(bench->dir_fd, BTRFS_IOC_SNAP_CREATE_V2, &args) < 0)
        err(1, "make a snapshot");
}

static void discard(const struct bench *bench, long sample, long number)
{
    struct btrfs_ioctl_vol_args args = { 0 };
    char name[BTRFS_SUBVOL_NAME_MAX + 1];

    name_of(name, sample, number);
    (void)snprintf(args.name, sizeof(args.name), "%s", name);
    if (ioctl(bench->dir_fd, BTRFS_IOC_SNAP_DESTROY, &args) < 0)
        err(1, "remove a snapshot");
}

static void measure(const struct bench *bench, long sample)
{
    long many = bench->many ? bench->many : 1;
    double started;

    change(bench);
    started = now_us();
    for (long i = 0; i < many; i++)
        snapshot(bench, sample, i);
    (void)printf("%.1f\n", now_us() - started);
    for (long i = 0; bench->many && i < many; i++)
        discard(bench, sample, i);
}

static int open_dir(int dir_fd, const char *path)
{
    int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        err(1, "open '%s'", path);
    return fd;
}

int main(int argc, char **argv)
{
    struct bench bench = { 0 };
    const char *quota_dir = NULL;
    long count;
    int option;

    while ((option = getopt(argc, argv, "c:m:q:")) != -1) {
        if (option == 'c')
            bench.changed_kib = strtol(optarg, NULL, 10);
        else if (option == 'm')
            bench.many = strtol(optarg, NULL, 10);
        else if (option == 'q')
            quota_dir = optarg;
        else
            return 2;
    }
    if (quota_dir) {
        enable_quota(open_dir(AT_FDCWD, quota_dir));
        return 0;
    }
    if (argc != optind + 2)
        errx(2, "usage: btrfs_snapshot [-c KIB] [-m MANY] COUNT DIR | -q DIR");
    count = strtol(argv[optind], NULL, 10);
    bench.dir_fd = open_dir(AT_FDCWD, argv[optind + 1]);
    bench.live_fd = open_dir(bench.dir_fd, "live");
    for (long i = 0; i < count; i++)
        measure(&bench, i);
    return 0;
}
