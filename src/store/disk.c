// SPDX-License-Identifier: Apache-2.0
#include "store/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "store/backend/btrfs_image.h"

enum {
    LOOK_MS = 50, /* in which a sandbox writes less than a step */
    LOOK_IDLE_MS = 2000,
    RESERVE_SHARE = 20, /* of the disk stay with the host, as a part */
    BALLAST_SHARE = 100,
};

static const uint64_t reserve_min = 32ULL << 20, reserve_max = 4ULL << 30;
static const uint64_t ballast_min = 8ULL << 20, ballast_max = 256ULL << 20;

struct disk {
    int state_fd;
    struct image *image;
    atomic_bool is_freed; /* the ballast had to be removed */
    struct worker worker;
};

static uint64_t clamp(uint64_t value, uint64_t least, uint64_t most)
{
    if (value < least)
        return least;
    return value < most ? value : most;
}

static bool has_ballast(const struct disk *disk)
{
    return faccessat(disk->state_fd, BALLAST_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The sizes that follow from the size of the disk. */
struct disk_sizes {
    uint64_t available, reserve, ballast;
    struct statvfs info;
};

static int sizes_read(const struct disk *disk, struct disk_sizes *ret)
{
    uint64_t total;

    if (fstatvfs(disk->state_fd, &ret->info) < 0)
        return -errno;
    total = (uint64_t)ret->info.f_blocks * ret->info.f_frsize;
    ret->available = (uint64_t)ret->info.f_bavail * ret->info.f_frsize;
    ret->reserve = clamp(total / RESERVE_SHARE, reserve_min, reserve_max);
    ret->ballast = clamp(total / BALLAST_SHARE, ballast_min, ballast_max);
    return 0;
}

int disk_read(const struct disk *disk, struct disk_space *ret)
{
    struct disk_sizes sizes;
    int r = sizes_read(disk, &sizes);

    if (r < 0)
        return r;
    *ret = (struct disk_space){
        .total = (uint64_t)sizes.info.f_blocks * sizes.info.f_frsize,
        .available = sizes.available,
        .spare = sizes.available > sizes.reserve ? sizes.available - sizes.reserve : 0,
        .inodes = (uint64_t)sizes.info.f_favail,
        .inodes_total = (uint64_t)sizes.info.f_files,
        .is_low = sizes.available < sizes.reserve / 2,
        .is_full = sizes.available < sizes.ballast / 2 || atomic_load(&disk->is_freed),
    };
    return 0;
}

static void ballast_make(const struct disk *disk, uint64_t bytes)
{
    cleanup_close int fd = openat(disk->state_fd, BALLAST_FILE,
                                  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    /* A filesystem without fallocate has none; an empty file says that it is not needed. */
    if (fd >= 0 && fallocate(fd, 0, 0, (off_t)bytes) < 0 && errno != EOPNOTSUPP)
        (void)unlinkat(disk->state_fd, BALLAST_FILE, 0);
}

static void disk_look(struct disk *disk)
{
    struct disk_sizes sizes;
    struct disk_space space;

    if (sizes_read(disk, &sizes) < 0)
        return;
    if (!has_ballast(disk)) {
        if (sizes.available >= sizes.reserve / 2 + 2 * sizes.ballast)
            ballast_make(disk, sizes.ballast);
        if (has_ballast(disk))
            atomic_store(&disk->is_freed, false);
        else if (sizes.available < sizes.ballast)
            atomic_store(&disk->is_freed, true);
    } else if (sizes.available < sizes.ballast / 2) {
        atomic_store(&disk->is_freed, true);
        (void)unlinkat(disk->state_fd, BALLAST_FILE, 0);
    }
    if (disk->image && disk_read(disk, &space) == 0)
        (void)image_grow(disk->image, space.spare);
}

static void disk_main(void *argument)
{
    struct disk *disk = argument;

    while (worker_rest(&disk->worker, disk->image ? LOOK_MS : LOOK_IDLE_MS, 0))
        disk_look(disk);
}

int disk_open(int state_fd, struct image *image, struct disk **ret, struct err *err)
{
    struct disk *disk = xcalloc(1, sizeof(*disk));
    int r;

    disk->state_fd = state_fd;
    disk->image = image;
    worker_init(&disk->worker, LOCK_DISK);
    disk_look(disk);
    r = thread_start(&disk->worker.thread, "holt-disk", disk_main, disk);
    if (r < 0) {
        worker_destroy(&disk->worker);
        free(disk);
        return err_sys(err, r, "start the thread of the disk");
    }
    *ret = disk;
    return 0;
}

void disk_close(struct disk *disk)
{
    if (!disk)
        return;
    worker_stop(&disk->worker);
    worker_destroy(&disk->worker);
    free(disk);
}
