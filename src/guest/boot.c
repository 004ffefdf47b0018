// SPDX-License-Identifier: Apache-2.0
#include "guest/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "kernel/caps.h"
#include "kernel/mount.h"
#include "kernel/netns.h"
#include "wire/message.h"

#define SAFE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

enum {
    MOUNT_BIND = 1 << 12 | 1 << 14,                          /* MS_BIND | MS_REC */
    MOUNT_REBIND_READONLY = 1 << 12 | 1 << 5 | 1 << 0 | 0xe, /* MS_BIND | MS_REMOUNT | MS_RDONLY |
                                                                MS_NOSUID | MS_NODEV | MS_NOEXEC */
};

/* Paths below /proc and /sys that a sandbox must not see or write to: Docker's list, and what tells
 * of the host's storage (paths of images, sizes and use of other sandboxes' volumes). Paths that
 * this kernel does not have are skipped. */
enum cover { COVER_NULL, COVER_EMPTY, COVER_READONLY };
static const struct {
    const char *path;
    enum cover how;
} covers[] = {
    { "/proc/kcore", COVER_NULL },
    { "/proc/keys", COVER_NULL },
    { "/proc/latency_stats", COVER_NULL },
    { "/proc/timer_list", COVER_NULL },
    { "/proc/timer_stats", COVER_NULL },
    { "/proc/sched_debug", COVER_NULL },
    { "/proc/interrupts", COVER_NULL },
    { "/proc/sysrq-trigger", COVER_NULL },
    { "/proc/cmdline", COVER_NULL },
    { "/proc/diskstats", COVER_NULL },
    { "/proc/partitions", COVER_NULL },
    { "/proc/acpi", COVER_EMPTY },
    { "/proc/asound", COVER_EMPTY },
    { "/proc/scsi", COVER_EMPTY },
    { "/sys/firmware", COVER_EMPTY },
    { "/sys/devices/virtual/powercap", COVER_EMPTY },
    { "/sys/devices/virtual/block", COVER_EMPTY },
    { "/sys/fs", COVER_EMPTY },
    { "/proc/bus", COVER_READONLY },
    { "/proc/fs", COVER_READONLY },
    { "/proc/irq", COVER_READONLY },
    { "/proc/sys", COVER_READONLY },
};

/* State shared by the boot steps. */
struct boot_state {
    const struct message_boot *message;
    struct boot_result result;
};

/* The process has all capabilities but an unmapped uid until it becomes root of its id range. */
static int become_root(struct boot_state *b)
{
    (void)b;
    if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return -errno;
    return 0;
}

/* Unshared here, not by clone: there the root of the namespace would be the parent's cgroup. */
static int unshare_cgroup(struct boot_state *b)
{
    if (!b->message->builds_root)
        return 0;
    return unshare(CLONE_NEWCGROUP) < 0 ? -errno : 0;
}

/* Mounts a new filesystem on a directory of the inherited tree. */
static int mount_filesystem(const char *type, const struct mount_option *options, size_t count,
                            uint64_t attributes, const char *path)
{
    cleanup_close int fd = mount_new(type, options, count, attributes);
    cleanup_close int mount_point = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return fd;
    return mount_point < 0 ? -errno : mount_attach(fd, mount_point);
}

/* /dev itself is inherited, read-only (see guest/zygote_root.h). Terminals are devices, so no
 * NODEV. */
static int make_mounts(struct boot_state *b)
{
    static const struct mount_option pts[] = {
        { "newinstance", NULL }, { "ptmxmode", "0666" }, { "mode", "0620" },
        { "gid", "5" },          { "max", "256" }, /* the whole machine has a few thousand */
    };
    /* Half of the default memory limit; files in it count against a lower limit, too. */
    static const struct mount_option shm[] = { { "mode", "1777" }, { "size", "25%" } };
    const uint64_t terminals = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
    int r;

    r = mount_filesystem("devpts", pts, ARRAY_SIZE(pts), terminals, "/dev/pts");
    if (r == 0)
        r = mount_filesystem("tmpfs", shm, ARRAY_SIZE(shm), SAFE, "/dev/shm");
    if (r < 0 || !b->message->builds_root)
        return r;
    r = mount_filesystem("proc", NULL, 0, SAFE, "/proc");
    if (r == 0)
        r = mount_filesystem("sysfs", NULL, 0, SAFE | MOUNT_ATTR_RDONLY, "/sys");
    return r == 0 ? mount_filesystem("mqueue", NULL, 0, SAFE, "/dev/mqueue") : r;
}

/* Paths are safe here: no process of the sandbox has run in this tree yet. */
static int bind_mount(const char *source, const char *target, bool is_readonly)
{
    if (syscall(SYS_mount, source, target, NULL, MOUNT_BIND, NULL) < 0)
        return -errno;
    if (is_readonly && syscall(SYS_mount, NULL, target, NULL, MOUNT_REBIND_READONLY, NULL) < 0)
        return -errno;
    return 0;
}

static int cover_path(enum cover how, const char *path)
{
    switch (how) {
    case COVER_NULL:
        return bind_mount("/dev/null", path, false);
    case COVER_EMPTY:
        return bind_mount("/none", path,
                          true); /* empty directory that every runtime's initial root has */
    case COVER_READONLY:
        return bind_mount(path, path, true);
    }
    return -EINVAL;
}

static int cover_secrets(struct boot_state *b)
{
    (void)b;
    for (size_t i = 0; i < ARRAY_SIZE(covers); i++) {
        int r = cover_path(covers[i].how, covers[i].path);

        if (r < 0 && r != -ENOENT)
            return r;
    }
    return 0;
}

/* Both the covers and the stdin of processes rely on /dev/null being the null device. */
static int open_devices(struct boot_state *b)
{
    struct stat null;

    b->result.null_fd = open("/dev/null", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (b->result.null_fd < 0 || fstat(b->result.null_fd, &null) < 0)
        return -errno;
    if (null.st_rdev != makedev(1, 3))
        return -ENODEV;
    b->result.devpts_fd = open("/dev/pts", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return b->result.devpts_fd < 0 ? -errno : 0;
}

static int make_identity(struct boot_state *b)
{
    return identity_make(&b->result.identity);
}

static int make_resources(struct boot_state *b)
{
    (void)resources_make(b->result.identity.files_fd, b->message->builds_root,
                         &b->result.resources);
    return 0;
}

/* No memory limit covers the queue of a connection that was not accepted yet, so both the number of
 * such connections and their queues are bounded; nor datagrams that are kept for their time stamps,
 * which a control message can ask for. Inside, /proc/sys is read-only. */
static int limit_queues(struct boot_state *b)
{
    int r = file_write_at(AT_FDCWD, "/proc/sys/net/core/somaxconn", "128");

    (void)b;
    if (r == 0)
        r = file_write_at(AT_FDCWD, "/proc/sys/net/ipv4/tcp_rmem", "4096 65536 1048576");
    if (r == 0)
        r = file_write_at(AT_FDCWD, "/proc/sys/net/core/tstamp_allow_data", "0");
    return r == -ENOENT ? 0 : r; /* an older kernel has one for all namespaces: holtd sets it */
}

static int bring_up_loopback(struct boot_state *b)
{
    (void)b;
    return netns_loopback_up();
}

/* holt-init keeps its own capabilities for the next root; the bounding set limits everything it
 * starts. Whether exec may gain privileges depends on the root: see spawn.c. */
static int limit_privileges(struct boot_state *b)
{
    int r = caps_limit(b->message->capabilities);

    /* setresuid may have changed the dumpable flag. */
    if (r == 0)
        r = prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
    return r;
}

static const struct {
    const char *name;
    int (*run)(struct boot_state *b);
} steps[] = {
    { "become root of the sandbox", become_root },
    { "unshare the cgroup namespace", unshare_cgroup },
    { "make /proc, /sys and /dev", make_mounts },
    { "open the null device and devpts", open_devices },
    { "create a boot id", make_identity },
    { "limit the queues of connections", limit_queues },
    { "cover hidden paths of /proc and /sys", cover_secrets },
    { "show the limits as resources", make_resources },
    { "bring up the loopback device", bring_up_loopback },
    { "limit privileges", limit_privileges },
};

int boot(const struct message_boot *message, struct boot_result *ret, struct err *err)
{
    struct boot_state b = {
        .message = message,
        .result = { .identity = { .files_fd = -EBADF,
                                  .etc_fd = -EBADF,
                                  .trust = { -EBADF, -EBADF } },
                    .null_fd = -EBADF,
                    .devpts_fd = -EBADF },
    };

    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        int r = steps[i].run(&b);

        if (r < 0)
            return err_sys(err, r, "%s", steps[i].name);
    }
    *ret = b.result;
    return 0;
}
