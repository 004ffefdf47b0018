// SPDX-License-Identifier: Apache-2.0
#include "guest/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/mount.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/random.h"
#include "base/text/hex.h"
#include "kernel/mount.h"
#include "kernel/path.h"

#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"
#define READ_ONLY (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

enum { UUID_TEXT = 40 };

/* Writes a random (version 4) UUID in the kernel's text format. */
static int random_uuid(char *text)
{
    uint8_t b[16];
    char hex[HEX_SIZE(sizeof(b))];

    if (random_bytes(b, sizeof(b)) < 0)
        return -EIO;
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    hex_encode(b, sizeof(b), hex);
    (void)snprintf(text, UUID_TEXT, "%.8s-%.4s-%.4s-%.4s-%.12s\n", hex, hex + 8, hex + 12, hex + 16,
                   hex + 20);
    return 0;
}

static uint64_t fnv_hash(const char *text, uint64_t start)
{
    for (; *text; text++)
        start = (start ^ (unsigned char)*text) * 1099511628211U; /* FNV-1a */
    return start;
}

static int identity_write(int dir_fd, const char *name, const char *text)
{
    (void)unlinkat(dir_fd, name, 0); /* existing mounts keep the old inode */
    return file_create_at(dir_fd, name, 0444, text);
}

/* Bind-mounts one of the identity files, read-only, over mount_point_fd. */
static int identity_mount(const struct identity *identity, const char *name, int mount_point_fd)
{
    cleanup_close int mount_fd = mount_clone(identity->files_fd, name, false);
    int r = mount_fd < 0 ? mount_fd : mount_set_attributes(mount_fd, READ_ONLY, false);

    return r < 0 ? r : mount_attach(mount_fd, mount_point_fd);
}

int identity_make(struct identity *ret)
{
    static const struct mount_option size = { "size", "64k" };
    cleanup_close int fd = mount_new("tmpfs", &size, 1, MOUNT_ATTR_NOEXEC);
    cleanup_close int mount_point = open(BOOT_ID_PATH, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    char uuid[UUID_TEXT];
    int r = fd < 0 ? fd : random_uuid(uuid);

    if (r == 0)
        r = identity_write(fd, "boot-id", uuid);
    if (r < 0)
        return r;
    ret->files_fd = TAKE_FD(fd);
    return mount_point < 0 ? -errno : identity_mount(ret, "boot-id", mount_point);
}

int identity_cover(const struct identity *identity, int root_fd, const char *hostname,
                   struct err *err)
{
    cleanup_close int mount_point =
        open_no_links(root_fd, "etc/machine-id", O_PATH | O_NOFOLLOW, 0);
    char text[UUID_TEXT];
    struct stat info;
    int r;

    if (mount_point < 0 || fstat(mount_point, &info) < 0 || !S_ISREG(info.st_mode))
        return 0;
    (void)snprintf(text, sizeof(text), "%016" PRIx64 "%016" PRIx64 "\n",
                   fnv_hash(hostname, 14695981039346656037U),
                   fnv_hash(hostname, 590684067820433389U));
    r = identity_write(identity->files_fd, "machine-id", text);
    if (r == 0)
        r = identity_mount(identity, "machine-id", mount_point);
    return r < 0 ? err_sys(err, r, "set the machine id of the sandbox") : 0;
}
