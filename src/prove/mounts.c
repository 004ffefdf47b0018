// SPDX-License-Identifier: Apache-2.0
/* Mounts and control groups. Each attempt is made with the rights that the process has, then as
 * root of a user namespace of its own. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "prove/prove.h"

enum { PATH_BYTES = 600 };

#define CORE_PATTERN "sys/kernel/core_pattern"

void prepare_mounts(const struct facts *facts)
{
    (void)facts;
    (void)unshare(CLONE_NEWNS);
    (void)mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

/* Returns whether the file can be opened for writing. Nothing is written. */
static bool can_write(const char *dir, const char *name)
{
    char path[PATH_BYTES];
    int fd;

    if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
        return false;
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

/* Mounts directly, or else in namespaces of its own. The control never needs the latter. */
static int mount_somehow(const struct facts *facts, const char *type, const char *dir,
                         const char *options)
{
    if (mount("none", dir, type, 0, options) == 0)
        return 0;
    if (!facts->is_inside || unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWCGROUP) < 0)
        return -1;
    return mount("none", dir, type, 0, options);
}

static void scratch_done(const char *dir)
{
    int saved = errno;

    (void)umount2(dir, MNT_DETACH);
    (void)rmdir(dir);
    errno = saved;
}

void attempt_proc_mount(const struct facts *facts, struct result *ret)
{
    const char *dir = scratch_dir(facts);

    if (mount_somehow(facts, "proc", dir, NULL) == 0 && can_write(dir, CORE_PATTERN))
        reached(ret, "core_pattern can be written in a new /proc");
    else
        held(ret, "mount proc");
    scratch_done(dir);
}

void attempt_remount(const struct facts *facts, struct result *ret)
{
    static const char *const places[] = { "/proc/sys", "/proc", "/sys", "/" };

    (void)facts;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        (void)mount(NULL, places[i], NULL, MS_REMOUNT | MS_BIND, NULL);
    (void)umount2("/proc/sys", MNT_DETACH);
    if (can_write("/proc", CORE_PATTERN))
        reached(ret, "core_pattern can be written after a remount");
    else
        held(ret, "remount /proc/sys");
}

void prepare_remount(const struct facts *facts)
{
    prepare_mounts(facts);
    (void)mount("/proc/sys", "/proc/sys", NULL, MS_BIND, NULL);
    (void)mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL);
}

/* An overlay of the host's kernel: that of gVisor offers none. */
void attempt_overlay_mount(const struct facts *facts, struct result *ret)
{
    static const char *const names[] = { "lower", "upper", "work", "merged" };
    const char *dir = scratch_dir(facts);
    char options[4 * PATH_BYTES], path[PATH_BYTES];

    if (mount_somehow(facts, "tmpfs", dir, NULL) < 0) {
        held(ret, "mount tmpfs");
        scratch_done(dir);
        return;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        (void)mkdir(path, 0700);
    }
    (void)snprintf(options, sizeof(options), "lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work",
                   dir, dir, dir);
    if (mount("none", path, "overlay", 0, options) == 0)
        reached(ret, "mounted an overlay");
    else
        held(ret, "mount overlay");
    (void)umount2(path, MNT_DETACH);
    scratch_done(dir);
}

void attempt_mount_api(const struct facts *facts, struct result *ret)
{
    long fd = syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

    if (fd < 0 && facts->is_inside && unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0)
        fd = syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (fd >= 0)
        reached(ret, "cloned the tree of /");
    else
        held(ret, "open_tree");
}

/* Looks for release_agent in the hierarchies that are mounted. */
static bool release_agent_search(struct result *ret)
{
    DIR *dir = opendir("/sys/fs/cgroup");
    const struct dirent *entry;
    char path[PATH_BYTES];

    while (dir && !ret->is_reached && (entry = readdir(dir))) {
        (void)snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", entry->d_name);
        if (can_write(path, "release_agent"))
            reached(ret, "%s/release_agent can be written", path);
    }
    if (dir)
        (void)closedir(dir);
    return ret->is_reached;
}

/* The control only looks: mounting a controller could take it from cgroup v2. */
void attempt_release_agent(const struct facts *facts, struct result *ret)
{
    static const char *const controllers[] = { "memory", "rdma", "pids", "devices", "misc" };
    const char *dir;

    if (release_agent_search(ret))
        return;
    if (!facts->is_inside) {
        errno = 0;
        absent(ret, "this machine has no cgroup v1");
        return;
    }
    dir = scratch_dir(facts);
    for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++) {
        if (mount_somehow(facts, "cgroup", dir, controllers[i]) < 0)
            held(ret, "mount cgroup");
        else if (can_write(dir, "release_agent"))
            reached(ret, "mounted %s with release_agent", controllers[i]);
        else
            held(ret, "open release_agent");
        if (ret->is_reached)
            break;
    }
    scratch_done(dir);
}

void attempt_cgroup_mount(const struct facts *facts, struct result *ret)
{
    const char *dir = scratch_dir(facts);

    if (mount_somehow(facts, "cgroup2", dir, NULL) == 0 && can_write(dir, "cgroup.procs"))
        reached(ret, "cgroup.procs can be written");
    else
        held(ret, "mount cgroup2");
    scratch_done(dir);
}

void attempt_core_pattern(const struct facts *facts, struct result *ret)
{
    (void)facts;
    if (can_write("/proc", CORE_PATTERN))
        reached(ret, "core_pattern can be written");
    else
        held(ret, "open core_pattern");
}

void attempt_kernel_settings(const struct facts *facts, struct result *ret)
{
    static const char *const files[] = {
        "proc/sysrq-trigger",       "proc/sys/kernel/modprobe",
        "proc/sys/kernel/hotplug",  "proc/sys/kernel/poweroff_cmd",
        "proc/sys/vm/panic_on_oom", "proc/sys/kernel/sysrq",
        "sys/kernel/uevent_helper", "proc/sys/fs/binfmt_misc/register",
        "sys/power/state",          "sys/kernel/mm/ksm/run",
    };

    (void)facts;
    for (size_t i = 0; !ret->is_reached && i < sizeof(files) / sizeof(files[0]); i++) {
        if (can_write("", files[i]))
            reached(ret, "/%s can be written", files[i]);
        else
            held(ret, "open for writing");
    }
}
