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
#include "kernel/caps.h"
#include "kernel/mount.h"
#include "kernel/netns.h"
#include "kernel/path.h"
#include "wire/message.h"

#define SAFE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

enum { PROPAGATE_PRIVATE = 1 << 18 | 1 << 14 /* MS_PRIVATE | MS_REC */ };

/* The device nodes a sandbox has. They are taken from the host by clone: nobody in a user namespace
 * may make one. */
static const char *const devices[] = { "null", "zero", "full", "random", "urandom", "tty" };

static const struct {
    const char *name, *target;
} links[] = {
    { "fd", "/proc/self/fd" },       { "stdin", "/proc/self/fd/0" },
    { "stdout", "/proc/self/fd/1" }, { "stderr", "/proc/self/fd/2" },
    { "ptmx", "pts/ptmx" },
};

/* What a sandbox must not see or touch below /proc and /sys, as Docker has it; what a kernel does
 * not have is skipped. */
enum cover { COVER_NULL, COVER_EMPTY, COVER_READONLY };
static const struct {
    const char *path;
    enum cover how;
} covers[] = {
    { "proc/kcore", COVER_NULL },
    { "proc/keys", COVER_NULL },
    { "proc/latency_stats", COVER_NULL },
    { "proc/timer_list", COVER_NULL },
    { "proc/timer_stats", COVER_NULL },
    { "proc/sched_debug", COVER_NULL },
    { "proc/interrupts", COVER_NULL },
    { "proc/sysrq-trigger", COVER_NULL },
    { "proc/acpi", COVER_EMPTY },
    { "proc/asound", COVER_EMPTY },
    { "proc/scsi", COVER_EMPTY },
    { "sys/firmware", COVER_EMPTY },
    { "sys/devices/virtual/powercap", COVER_EMPTY },
    { "proc/bus", COVER_READONLY },
    { "proc/fs", COVER_READONLY },
    { "proc/irq", COVER_READONLY },
    { "proc/sys", COVER_READONLY },
};

/* Everything the steps share; descriptors of mounts that are not attached yet. */
struct booting {
    const struct message_boot *message;
    int root_fd, proc_fd, sys_fd, dev_fd;
    int device_fds[ARRAY_SIZE(devices)];
    struct boot_result result;
};

/* Until now this process had capabilities but no uid; from here on it is root of its own range. */
static int become_root(struct booting *b)
{
    (void)b;
    if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return -errno;
    return 0;
}

/* Not by clone: there the root of the namespace would be the parent's group. */
static int own_cgroup_view(struct booting *b)
{
    if (!b->message->builds_root)
        return 0;
    return unshare(CLONE_NEWCGROUP) < 0 ? -errno : 0;
}

static int detach_from_host(struct booting *b)
{
    if (!b->message->builds_root)
        return 0;
    return syscall(SYS_mount, NULL, "/", NULL, PROPAGATE_PRIVATE, NULL) < 0 ? -errno : 0;
}

static int new_tmpfs(const char *mode, const char *size, uint64_t attributes)
{
    const struct mount_option options[] = { { "mode", mode }, { "size", size } };

    return mount_new("tmpfs", options, ARRAY_SIZE(options), attributes);
}

/* Still in the host's tree, which is trusted; a procfs is only allowed while another is in sight.
 */
static int make_mounts(struct booting *b)
{
    if (!b->message->builds_root)
        return 0;
    b->proc_fd = mount_new("proc", NULL, 0, SAFE);
    if (b->proc_fd < 0)
        return b->proc_fd;
    b->sys_fd = mount_new("sysfs", NULL, 0, SAFE | MOUNT_ATTR_RDONLY);
    if (b->sys_fd < 0)
        return b->sys_fd;
    b->dev_fd = new_tmpfs("755", "64k", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    if (b->dev_fd < 0)
        return b->dev_fd;
    b->root_fd = new_tmpfs("755", "64k", SAFE);
    return b->root_fd < 0 ? b->root_fd : 0;
}

static int open_dev(const char *name)
{
    cleanup_close int dev_fd = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);

    return dev_fd < 0 ? -errno : open_no_links(dev_fd, name, O_RDWR | O_NOCTTY, 0);
}

static int take_devices(struct booting *b)
{
    struct stat null;

    b->result.null_fd = open_dev("null");
    if (b->result.null_fd < 0)
        return b->result.null_fd;
    /* Whatever is mounted over secrets later must truly be the null device. */
    if (fstat(b->result.null_fd, &null) < 0 || null.st_rdev != makedev(1, 3))
        return -ENODEV;
    for (size_t i = 0; b->message->builds_root && i < ARRAY_SIZE(devices); i++) {
        cleanup_close int dev_fd = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);

        b->device_fds[i] = dev_fd < 0 ? -errno : mount_clone(dev_fd, devices[i], false);
        if (b->device_fds[i] < 0)
            return b->device_fds[i];
    }
    return 0;
}

static int enter_blank_root(struct booting *b)
{
    cleanup_close int proc_place = -EBADF;
    int r;

    if (!b->message->builds_root)
        return 0;
    if (mkdirat(b->root_fd, "proc", 0555) < 0 || mkdirat(b->root_fd, "sys", 0555) < 0 ||
        mkdirat(b->root_fd, "dev", 0755) < 0)
        return -errno;
    /* Any directory will do for the moment before the pivot; /proc is on every host. */
    proc_place = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (proc_place < 0)
        return -errno;
    r = mount_attach(b->root_fd, proc_place);
    return r < 0 ? r : mount_pivot(b->root_fd);
}

static int attach_at(int mount_fd, const char *path)
{
    cleanup_close int place = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    return place < 0 ? -errno : mount_attach(mount_fd, place);
}

static int attach_mounts(struct booting *b)
{
    int r;

    if (!b->message->builds_root)
        return 0;
    r = attach_at(b->proc_fd, "/proc");
    if (r == 0)
        r = attach_at(b->sys_fd, "/sys");
    return r == 0 ? attach_at(b->dev_fd, "/dev") : r;
}

static int attach_new(const char *type, const struct mount_option *options, size_t count,
                      const char *path)
{
    /* Terminals are devices. */
    uint64_t attributes = strcmp(type, "devpts") == 0 ? SAFE & ~(uint64_t)MOUNT_ATTR_NODEV : SAFE;
    cleanup_close int fd = -EBADF;

    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return -errno;
    fd = mount_new(type, options, count, attributes);
    return fd < 0 ? fd : attach_at(fd, path);
}

static int fill_dev(struct booting *b)
{
    static const struct mount_option pts[] = {
        { "newinstance", NULL }, { "ptmxmode", "0666" }, { "mode", "0620" }, { "gid", "5" }
    };
    static const struct mount_option shm[] = { { "mode", "1777" } };
    int r;

    if (!b->message->builds_root)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
        cleanup_close int place =
            openat(b->dev_fd, devices[i], O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);

        r = place < 0 ? -errno : mount_attach(b->device_fds[i], place);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < ARRAY_SIZE(links); i++)
        if (symlinkat(links[i].target, b->dev_fd, links[i].name) < 0)
            return -errno;
    r = attach_new("devpts", pts, ARRAY_SIZE(pts), "/dev/pts");
    if (r == 0)
        r = attach_new("tmpfs", shm, ARRAY_SIZE(shm), "/dev/shm");
    return r == 0 ? attach_new("mqueue", NULL, 0, "/dev/mqueue") : r;
}

/* A mount to lay over place: the null device, nothing, or place itself made read-only. */
static int cover_for(enum cover how, int place)
{
    cleanup_close int fd = -EBADF;
    int r;

    switch (how) {
    case COVER_NULL:
        return mount_clone(AT_FDCWD, "/dev/null", false);
    case COVER_EMPTY:
        return new_tmpfs("555", "4k", SAFE | MOUNT_ATTR_RDONLY);
    case COVER_READONLY:
        break;
    }
    fd = mount_clone(place, "", true);
    if (fd < 0)
        return fd;
    r = mount_set_attributes(fd, SAFE | MOUNT_ATTR_RDONLY, true);
    return r < 0 ? r : TAKE_FD(fd);
}

static int cover_secrets(struct booting *b)
{
    cleanup_close int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    (void)b;
    if (root_fd < 0)
        return -errno;
    for (size_t i = 0; i < ARRAY_SIZE(covers); i++) {
        cleanup_close int place = open_no_links(root_fd, covers[i].path, O_PATH, 0);
        cleanup_close int cover = -EBADF;
        int r;

        if (place == -ENOENT)
            continue;
        if (place < 0)
            return place;
        cover = cover_for(covers[i].how, place);
        r = cover < 0 ? cover : mount_attach(cover, place);
        if (r < 0)
            return r;
    }
    return 0;
}

static int keep_devpts(struct booting *b)
{
    b->result.devpts_fd = open("/dev/pts", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return b->result.devpts_fd < 0 ? -errno : 0;
}

static int network(struct booting *b)
{
    (void)b;
    return netns_loopback_up();
}

/* holt-init keeps its own capabilities for the next root, but nothing it starts can have more. */
static int limit_privileges(struct booting *b)
{
    int r = caps_limit(b->message->capabilities);

    if (r == 0)
        r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
    /* setresuid made this process dumpable again or not, as it pleased the kernel. */
    if (r == 0)
        r = prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
    return r;
}

static const struct {
    const char *name;
    int (*run)(struct booting *b);
} steps[] = {
    { "become root of the sandbox", become_root },
    { "take its own view of control groups", own_cgroup_view },
    { "detach from the host's mounts", detach_from_host },
    { "make /proc, /sys and /dev", make_mounts },
    { "take the device nodes", take_devices },
    { "enter the blank root", enter_blank_root },
    { "attach /proc, /sys and /dev", attach_mounts },
    { "fill /dev", fill_dev },
    { "cover what is not for sandboxes", cover_secrets },
    { "keep devpts", keep_devpts },
    { "bring up the loopback device", network },
    { "limit privileges", limit_privileges },
};

static void booting_done(struct booting *b)
{
    b->root_fd = fd_close(b->root_fd);
    b->proc_fd = fd_close(b->proc_fd);
    b->sys_fd = fd_close(b->sys_fd);
    b->dev_fd = fd_close(b->dev_fd);
    for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
        b->device_fds[i] = fd_close(b->device_fds[i]);
}

int boot(const struct message_boot *message, struct boot_result *ret, struct err *err)
{
    cleanup_with(booting_done) struct booting b = {
        .message = message,
        .root_fd = -EBADF,
        .proc_fd = -EBADF,
        .sys_fd = -EBADF,
        .dev_fd = -EBADF,
        .result = { .null_fd = -EBADF, .devpts_fd = -EBADF },
    };

    for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
        b.device_fds[i] = -EBADF;
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        int r = steps[i].run(&b);

        if (r < 0)
            return err_sys(err, r, "%s", steps[i].name);
    }
    *ret = b.result;
    return 0;
}
