// SPDX-License-Identifier: Apache-2.0
#include "store/backend/btrfs_image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/loop.h>
#include <linux/mount.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "kernel/btrfs.h"
#include "kernel/mount.h"
#include "store/command.h"

#define IMAGE "volumes.img"
#define NEW_IMAGE "volumes.img.new"

enum { LOOPS_MAX = 1024, LOOP_TRIES = 16, DEVICE_BYTES = 32, MKFS_MS = 60 * 1000 };

static const uint64_t size_min = 256ULL << 20;

/* A step must be more than sandboxes write to the page cache between two looks, or one of them gets
 * ENOSPC although there is space: at 3 GB/s this is enough for half a second. */
static const uint64_t step_min = 64ULL << 20, step_max = 2ULL << 30, grain = 16ULL << 20;
enum { STEPS_PER_DISK = 2 };

struct image {
    int file_fd;
    int mount_fd; /* unmounts it when it is closed; a path only */
    int root_fd;
    int loop; /* number of its device */
    uint64_t step;
    bool is_sparse;
};

static int image_format(const char *path, struct err *err)
{
    const char *const args[] = { "mkfs.btrfs", "--quiet", "--nodiscard", path, NULL };
    struct command_result result;
    int r = command_run(args, MKFS_MS, NULL, &result);

    if (r == -ENOENT)
        return err_set(err, ERR_UNSUPPORTED, "mkfs.btrfs not found (package btrfs-progs)");
    if (r < 0)
        return err_sys(err, r, "run mkfs.btrfs on '%s'", path);
    if (result.status != 0)
        return err_set(err, ERR_INTERNAL, "mkfs.btrfs of '%s' failed: %.*s", path,
                       (int)strcspn(result.stderr_text, "\n"), result.stderr_text);
    return 0;
}

/* Allocates the blocks of a part of the file, which grows if need be. On a filesystem that cannot,
 * the file is sparse. */
static int file_allocate(int fd, uint64_t from, uint64_t to)
{
    struct stat st;

    if (to <= from || fallocate(fd, 0, (off_t)from, (off_t)(to - from)) == 0)
        return 0;
    if (errno != EOPNOTSUPP)
        return -errno;
    if (fstat(fd, &st) < 0 || ((uint64_t)st.st_size < to && ftruncate(fd, (off_t)to) < 0))
        return -errno;
    return 0;
}

/* Creates a file of the smallest size. */
static int image_file_make(int state_fd, struct err *err)
{
    cleanup_close int fd =
        openat(state_fd, NEW_IMAGE, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct statfs info;
    int r;

    if (fd < 0 || fstatfs(fd, &info) < 0)
        return err_sys(err, -errno, "make the volume image");
    if ((uint64_t)info.f_bavail * (uint64_t)info.f_bsize / 5 * 4 < size_min)
        return err_set(err, ERR_UNSUPPORTED, "less than %" PRIu64 " MiB are free", size_min >> 20);
    r = file_allocate(fd, 0, size_min);
    return r < 0 ? err_sys(err, r, "allocate the volume image") : 0;
}

/* Waits until the new image is on disk, then gives it its name, which is on disk as well when this
 * returns. */
static int image_publish(int state_fd, struct err *err)
{
    cleanup_close int fd = openat(state_fd, NEW_IMAGE, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 || fsync(fd) < 0)
        return err_sys(err, -errno, "flush the volume image");
    if (renameat(state_fd, NEW_IMAGE, state_fd, IMAGE) < 0 || fsync(state_fd) < 0)
        return err_sys(err, -errno, "rename the volume image");
    return 0;
}

static int image_make(int state_fd, const char *state_dir, struct err *err)
{
    cleanup_free char *path = xasprintf("%s/%s", state_dir, NEW_IMAGE);
    int r = image_file_make(state_fd, err);

    if (r == 0)
        r = image_format(path, err);
    if (r == 0)
        r = image_publish(state_fd, err);
    if (r < 0)
        (void)unlinkat(state_fd, NEW_IMAGE, 0);
    return r;
}

static int loop_open(int number)
{
    char path[DEVICE_BYTES];
    int fd;

    (void)snprintf(path, sizeof(path), "/dev/loop%d", number);
    fd = open(path, O_RDWR | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Finds a loop device that is already attached to this file: one of an earlier daemon, in use by
 * its sandboxes. A second one would be a second instance of the filesystem on the same data. */
static bool loop_find(const struct stat *file, int *ret_fd, int *ret_number)
{
    for (int i = 0; i < LOOPS_MAX; i++) {
        struct loop_info64 info;
        int fd = loop_open(i);

        if (fd < 0)
            continue;
        if (ioctl(fd, LOOP_GET_STATUS64, &info) == 0 && info.lo_inode == file->st_ino &&
            info.lo_device == file->st_dev) {
            *ret_fd = fd;
            *ret_number = i;
            return true;
        }
        (void)close(fd);
    }
    return false;
}

static int loop_attach(int image_fd, int *ret_fd, int *ret_number)
{
    cleanup_close int control_fd = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    struct loop_config config = {
        .fd = (uint32_t)image_fd,
        .info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
    };

    if (control_fd < 0)
        return -errno;
    /* Another process may attach the free device first. */
    for (int i = 0; i < LOOP_TRIES; i++) {
        int number = ioctl(control_fd, LOOP_CTL_GET_FREE);
        int fd = number < 0 ? -errno : loop_open(number);

        if (fd < 0)
            return fd;
        if (ioctl(fd, LOOP_CONFIGURE, &config) == 0) {
            *ret_fd = fd;
            *ret_number = number;
            return 0;
        }
        (void)close(fd);
        if (errno == EINVAL && config.info.lo_flags & LO_FLAGS_DIRECT_IO)
            config.info.lo_flags &=
                ~(uint32_t)LO_FLAGS_DIRECT_IO; /* not supported on tmpfs, for example */
        else if (errno != EBUSY)
            return -errno;
    }
    return -EBUSY;
}

static int loop_mount(int number, struct err *err)
{
    char device[DEVICE_BYTES];
    /* A discarded block of the image would no longer be allocated. */
    const struct mount_option options[] = { { "source", device }, { "nodiscard", NULL } };
    int fd;

    (void)snprintf(device, sizeof(device), "/dev/loop%d", number);
    fd = mount_new("btrfs", options, ARRAY_SIZE(options), MOUNT_ATTR_NOATIME);
    if (fd == -ENODEV)
        return err_set(err, ERR_UNSUPPORTED, "this kernel does not support btrfs");
    return fd < 0 ? err_sys(err, fd, "mount the volume image on '%s'", device) : fd;
}

static int loop_error(int r, struct err *err)
{
    if (r == -ENOENT || r == -ENXIO || r == -EPERM || r == -EACCES)
        return err_set(err, ERR_UNSUPPORTED, "no loop device available: %s", strerror(-r));
    (void)err_set(err, ERR_EXHAUSTED, "out of loop devices: no loop device is free (%s)",
                  strerror(-r));
    return err_remedy(err, "detach some (losetup -D), or raise the limit (max_loop of the kernel)");
}

static int image_mount_existing(int state_fd, struct image *image, struct err *err)
{
    cleanup_close int loop_fd = -EBADF;
    struct stat file;
    int r = 0;

    image->file_fd = openat(state_fd, IMAGE, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (image->file_fd < 0 || fstat(image->file_fd, &file) < 0)
        return err_sys(err, -errno, "open the volume image");
    if (!loop_find(&file, &loop_fd, &image->loop))
        r = loop_attach(image->file_fd, &loop_fd, &image->loop);
    if (r < 0)
        return loop_error(r, err);
    image->mount_fd = loop_mount(image->loop, err);
    if (image->mount_fd < 0)
        return image->mount_fd;
    image->root_fd = openat(image->mount_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return image->root_fd < 0 ? err_sys(err, -errno, "open the root of the volume image") : 0;
}

/* --- the size --------------------------------------------------------------------------------- */

static uint64_t step_choose(int fd)
{
    struct statfs info;
    uint64_t step = step_min;

    if (fstatfs(fd, &info) == 0)
        step = (uint64_t)info.f_blocks * (uint64_t)info.f_bsize / STEPS_PER_DISK / grain * grain;
    if (step < step_min)
        return step_min;
    return step < step_max ? step : step_max;
}

/* Makes the loop device as large as the file. */
static int loop_resize(const struct image *image)
{
    cleanup_close int loop_fd = loop_open(image->loop);

    if (loop_fd < 0)
        return loop_fd;
    return ioctl(loop_fd, LOOP_SET_CAPACITY, 0) < 0 ? -errno : 0;
}

static bool file_is_sparse(const struct stat *st)
{
    return (uint64_t)st->st_blocks * 512 + grain < (uint64_t)st->st_size;
}

/* Shrinks an image of an earlier version to about what is allocated, and allocates the rest. */
static int image_condense(struct image *image, uint64_t spare)
{
    struct stat st;
    uint64_t size;
    int r;

    if (fstat(image->file_fd, &st) < 0)
        return -errno;
    if (!file_is_sparse(&st))
        return 0;
    size = ((uint64_t)st.st_blocks * 512 + image->step + grain - 1) / grain * grain;
    if (size < size_min)
        size = size_min;
    if (size > (uint64_t)st.st_size)
        size = (uint64_t)st.st_size;
    if (size - (uint64_t)st.st_blocks * 512 > spare)
        return -ENOSPC;
    r = size < (uint64_t)st.st_size ? btrfs_resize(image->root_fd, size) : 0;
    if (r == 0 && ftruncate(image->file_fd, (off_t)size) < 0)
        r = -errno;
    if (r == 0)
        r = loop_resize(image);
    return r < 0 ? r : file_allocate(image->file_fd, 0, size);
}

/* Returns the bytes that can still be written to the image as it is. */
static int image_free(const struct image *image, uint64_t *ret)
{
    uint64_t size, promised = 0, available;
    struct statfs info;
    int r = btrfs_sizes(image->root_fd, &size, &promised);

    if (r < 0)
        return r;
    if (fstatfs(image->root_fd, &info) < 0)
        return -errno;
    available = (uint64_t)info.f_bavail * (uint64_t)info.f_bsize;
    *ret = available > promised ? available - promised : 0;
    return 0;
}

int image_grow(struct image *image, uint64_t spare)
{
    uint64_t available = 0, more;
    struct stat st;
    int r = image_free(image, &available);

    if (r < 0 || available >= image->step || image->is_sparse)
        return r;
    if (fstat(image->file_fd, &st) < 0)
        return -errno;
    more = (image->step < spare ? image->step : spare) / grain * grain;
    if (more == 0)
        return -ENOSPC;
    r = file_allocate(image->file_fd, (uint64_t)st.st_size, (uint64_t)st.st_size + more);
    if (r < 0) {
        (void)!ftruncate(image->file_fd, st.st_size);
        return r;
    }
    r = loop_resize(image);
    return r < 0 ? r : btrfs_resize(image->root_fd, (uint64_t)st.st_size + more);
}

bool image_is_sparse(const struct image *image)
{
    return image->is_sparse;
}

/* --- open and close --------------------------------------------------------------------------- */

int image_root(const struct image *image)
{
    return image->root_fd;
}

void image_close(struct image *image)
{
    if (!image)
        return;
    (void)fd_close(image->root_fd);
    (void)fd_close(image->mount_fd);
    (void)fd_close(image->file_fd);
    free(image);
}

DEFINE_CLEANUP(image_close, struct image *);

/* A crash between the growth of the file and that of the filesystem leaves the latter smaller. */
static void image_adjust(struct image *image, uint64_t spare)
{
    uint64_t size = 0, ignored;
    struct stat st;

    image->step = step_choose(image->file_fd);
    image->is_sparse = image_condense(image, spare) < 0;
    if (!image->is_sparse && fstat(image->file_fd, &st) == 0 &&
        btrfs_sizes(image->root_fd, &size, &ignored) == 0 && size < (uint64_t)st.st_size &&
        loop_resize(image) == 0)
        (void)btrfs_resize(image->root_fd, (uint64_t)st.st_size);
}

int image_open(int state_fd, const char *state_dir, struct image **ret, struct err *err)
{
    cleanup_with(image_close_slot) struct image *image = xcalloc(1, sizeof(*image));
    bool is_new = faccessat(state_fd, IMAGE, F_OK, 0) < 0;
    struct statfs info = { 0 };
    int r = is_new ? image_make(state_fd, state_dir, err) : 0;

    image->file_fd = image->mount_fd = image->root_fd = -EBADF;
    if (r == 0)
        r = image_mount_existing(state_fd, image, err);
    /* An existing image holds data, so there is no fallback. It may have failed: after an error
     * the kernel makes it read-only, and it cannot be mounted again while a sandbox of an earlier
     * run holds it, and for a moment after. */
    if (r < 0 && !is_new && err->kind != ERR_EXHAUSTED)
        err->kind = ERR_BUSY;
    if (r < 0)
        return r;
    (void)fstatfs(state_fd, &info);
    image_adjust(image, (uint64_t)info.f_bavail * (uint64_t)info.f_bsize);
    *ret = TAKE_PTR(image);
    return 0;
}
