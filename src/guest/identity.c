// SPDX-License-Identifier: Apache-2.0
#include "guest/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/mount.h>
#include <stdbool.h>
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
#define WRITABLE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)
#define READ_ONLY (MOUNT_ATTR_RDONLY | WRITABLE)

#define RESOLVER "192.0.2.53" /* as in host/net/net.h */

enum { UUID_TEXT = 40, ETC_TEXT = 256 };

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

static int identity_write(int dir_fd, const char *name, mode_t mode, const char *text)
{
    (void)unlinkat(dir_fd, name, 0); /* existing mounts keep the old inode */
    return file_create_at(dir_fd, name, mode, text);
}

/* Bind-mounts a file of one of the identity's filesystems over mount_point_fd. */
static int identity_mount(int dir_fd, const char *name, uint64_t attributes, int mount_point_fd)
{
    cleanup_close int mount_fd = mount_clone(dir_fd, name, false);
    int r = mount_fd < 0 ? mount_fd : mount_set_attributes(mount_fd, attributes, false);

    return r < 0 ? r : mount_attach(mount_fd, mount_point_fd);
}

static int tmpfs_new(const char *bytes)
{
    const struct mount_option size = { "size", bytes };

    return mount_new("tmpfs", &size, 1, MOUNT_ATTR_NOEXEC);
}

int identity_make(struct identity *ret)
{
    cleanup_close int fd = tmpfs_new("1m"), etc_fd = tmpfs_new("64k");
    cleanup_close int mount_point = open(BOOT_ID_PATH, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    char uuid[UUID_TEXT];
    int r = fd < 0 ? fd : random_uuid(uuid);

    if (r == 0 && etc_fd < 0)
        r = etc_fd;
    if (r == 0)
        r = identity_write(fd, "boot-id", 0444, uuid);
    if (r < 0)
        return r;
    ret->files_fd = TAKE_FD(fd);
    ret->etc_fd = TAKE_FD(etc_fd);
    if (mount_point < 0)
        return -errno;
    return identity_mount(ret->files_fd, "boot-id", READ_ONLY, mount_point);
}

static bool is_regular(int fd)
{
    struct stat info;

    return fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

static int machine_id_cover(const struct identity *identity, int root_fd, const char *hostname)
{
    cleanup_close int mount_point =
        open_no_links(root_fd, "etc/machine-id", O_PATH | O_NOFOLLOW, 0);
    char text[UUID_TEXT];
    int r;

    if (!is_regular(mount_point))
        return 0;
    (void)snprintf(text, sizeof(text), "%016" PRIx64 "%016" PRIx64 "\n",
                   fnv_hash(hostname, 14695981039346656037U),
                   fnv_hash(hostname, 590684067820433389U));
    r = identity_write(identity->files_fd, "machine-id", 0444, text);
    return r < 0 ? r : identity_mount(identity->files_fd, "machine-id", READ_ONLY, mount_point);
}

/* A sandbox has only a loopback device, so its own name is an address of that. */
static int etc_write(int etc_fd, const char *hostname)
{
    char text[ETC_TEXT];
    int r;

    (void)snprintf(text, sizeof(text), "%.64s\n", hostname);
    r = identity_write(etc_fd, "hostname", 0644, text);
    if (r < 0)
        return r;
    (void)snprintf(text, sizeof(text),
                   "127.0.0.1\tlocalhost %.64s\n::1\tlocalhost ip6-localhost ip6-loopback\n",
                   hostname);
    r = identity_write(etc_fd, "hosts", 0644, text);
    if (r < 0)
        return r;
    return identity_write(etc_fd, "resolv.conf", 0644,
                          "# Holt's resolver. It answers if the sandbox has a network.\n"
                          "nameserver " RESOLVER "\n");
}

/* Processes of the sandbox may have filled the filesystem; files that an old root still shows keep
 * their space. */
static int etc_renew(struct identity *identity, const char *hostname)
{
    int fd, r = etc_write(identity->etc_fd, hostname);

    if (r == 0)
        return 0;
    fd = tmpfs_new("64k");
    if (fd < 0)
        return fd;
    (void)fd_close(identity->etc_fd);
    identity->etc_fd = fd;
    return etc_write(fd, hostname);
}

/* Opens a file of /etc of a root. Links are followed as processes of the sandbox follow them:
 * resolv.conf often is one. A link to a missing file is itself the mount point: systemd-resolved
 * would create the target. */
static int etc_open(int root_fd, const char *name)
{
    cleanup_close int dir_fd = -EBADF, link_fd = -EBADF;
    struct stat info;
    char path[32];
    int fd;

    (void)snprintf(path, sizeof(path), "/etc/%s", name);
    fd = open_in_root(root_fd, path, O_PATH, 0);
    if (fd != -ENOENT)
        return fd;
    dir_fd = open_in_root(root_fd, "/etc", O_PATH | O_DIRECTORY, 0);
    if (dir_fd < 0)
        return dir_fd;
    link_fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (link_fd < 0 || fstat(link_fd, &info) < 0)
        return -errno;
    return S_ISLNK(info.st_mode) ? TAKE_FD(link_fd) : -ENOENT;
}

static bool is_mount_point(int fd)
{
    struct stat info;

    return fd >= 0 && fstat(fd, &info) == 0 && (S_ISREG(info.st_mode) || S_ISLNK(info.st_mode));
}

static int etc_cover(struct identity *identity, int root_fd, const char *hostname)
{
    static const char *const names[] = { "hosts", "hostname", "resolv.conf" };
    int r = etc_renew(identity, hostname);

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(names); i++) {
        cleanup_close int mount_point = etc_open(root_fd, names[i]);

        if (is_mount_point(mount_point))
            r = identity_mount(identity->etc_fd, names[i], WRITABLE, mount_point);
    }
    return r;
}

int identity_cover(struct identity *identity, int root_fd, const char *hostname, struct err *err)
{
    int r = machine_id_cover(identity, root_fd, hostname);

    if (r < 0)
        return err_sys(err, r, "set the machine id of the sandbox");
    r = etc_cover(identity, root_fd, hostname);
    return r < 0 ? err_sys(err, r, "set the names of the sandbox") : 0;
}
