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
#include "kernel/mount.h"
#include "store/command.h"

#define IMAGE "volumes.img"
#define NEW_IMAGE "volumes.img.new"

enum { LOOPS_MAX = 1024, LOOP_TRIES = 16, DEVICE_BYTES = 32, MKFS_MS = 60 * 1000 };

static const uint64_t size_min = 256ULL << 20, size_max = 256ULL << 30;

static int image_format(const char *path, struct err *err)
{
    const char *const args[] = { "mkfs.btrfs", "--quiet", path, NULL };
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

/* Creates a sparse file with the size of most of the free space; only written blocks use space. */
static int image_file_make(int state_fd, struct err *err)
{
    cleanup_close int fd =
        openat(state_fd, NEW_IMAGE, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct statfs info;
    uint64_t size;

    if (fd < 0 || fstatfs(fd, &info) < 0)
        return err_sys(err, -errno, "make the volume image");
    size = (uint64_t)info.f_bavail * (uint64_t)info.f_bsize / 5 * 4;
    if (size < size_min)
        return err_set(err, ERR_UNSUPPORTED, "less than %" PRIu64 " MiB are free", size_min >> 20);
    if (ftruncate(fd, (off_t)(size < size_max ? size : size_max)) < 0)
        return err_sys(err, -errno, "size the volume image");
    return 0;
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
    struct mount_option source = { .key = "source", .value = device };
    int fd;

    (void)snprintf(device, sizeof(device), "/dev/loop%d", number);
    fd = mount_new("btrfs", &source, 1, MOUNT_ATTR_NOATIME);
    if (fd == -ENODEV)
        return err_set(err, ERR_UNSUPPORTED, "this kernel does not support btrfs");
    return fd < 0 ? err_sys(err, fd, "mount the volume image on '%s'", device) : fd;
}

static int image_mount_existing(int state_fd, struct err *err)
{
    cleanup_close int image_fd = -EBADF, loop_fd = -EBADF;
    struct stat file;
    int number = -1, r = 0;

    image_fd = openat(state_fd, IMAGE, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (image_fd < 0 || fstat(image_fd, &file) < 0)
        return err_sys(err, -errno, "open the volume image");
    if (!loop_find(&file, &loop_fd, &number))
        r = loop_attach(image_fd, &loop_fd, &number);
    if (r < 0)
        return err_set(err, ERR_UNSUPPORTED, "no loop device available: %s", strerror(-r));
    return loop_mount(number, err);
}

int image_mount(int state_fd, const char *state_dir, int *ret_fd, struct err *err)
{
    bool is_new = faccessat(state_fd, IMAGE, F_OK, 0) < 0;
    int fd = is_new ? image_make(state_fd, state_dir, err) : 0;

    if (fd == 0)
        fd = image_mount_existing(state_fd, err);
    /* An existing image holds data, so there is no fallback. It may have failed: after an error
     * the kernel makes it read-only, and it cannot be mounted again while a sandbox of an earlier
     * run holds it, and for a moment after. */
    if (fd < 0 && !is_new)
        err->kind = ERR_BUSY;
    if (fd < 0)
        return fd;
    *ret_fd = fd;
    return 0;
}
