// SPDX-License-Identifier: Apache-2.0
#include "host/machine/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/thread.h"
#include "host/machine/machine_internal.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/mount.h"
#include "kernel/path.h"
#include "store/volume/volume.h"

void machine_beside_id(const char *first, char ret[static RUNTIME_ID_MAX])
{
    (void)snprintf(ret, RUNTIME_ID_MAX, "%.*s/" CGROUP_TIER,
                   (int)(RUNTIME_ID_MAX - sizeof("/" CGROUP_TIER)), first);
}

/* What the thread works with. */
struct cloning {
    const struct volume *volume;
    int namespace_fd, root_fd;
    struct volume_mounts mounts;
    int result;
    const char *target; /* that failed */
};

/* The sandbox may have moved a directory above a mount point, and put something else there. */
static int mount_point_check(int fd)
{
    struct statx info;

    if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &info) < 0)
        return -errno;
    return info.stx_attributes & STATX_ATTR_MOUNT_ROOT ? 0 : -ENOTDIR;
}

static int target_clone(const struct cloning *cloning, const char *target)
{
    cleanup_close int fd =
        target[1] == '\0' ? fcntl(cloning->root_fd, F_DUPFD_CLOEXEC, 3)
                          : open_no_links(cloning->root_fd, target + 1, O_PATH | O_DIRECTORY, 0);
    int r = fd < 0 ? fd : mount_point_check(fd);

    return r < 0 ? r : mount_clone(fd, "", false);
}

/* Only in its own mount namespace may a thread clone a mount. */
static void cloning_main(void *argument)
{
    struct cloning *cloning = argument;
    struct volume_mounts *mounts = &cloning->mounts;
    const char *target;

    if (unshare(CLONE_FS) < 0 || setns(cloning->namespace_fd, CLONE_NEWNS) < 0) {
        cloning->result = -errno;
        return;
    }
    for (size_t i = 0; (target = volume_target(cloning->volume, i)); i++) {
        int fd = target_clone(cloning, target);

        cloning->target = target;
        cloning->result = fd;
        if (fd < 0)
            return;
        mounts->targets[mounts->count] = target;
        mounts->fds[mounts->count++] = fd;
    }
    cloning->result = 0;
}

int machine_clone_mounts(const struct machine *first, const struct volume *volume,
                         struct volume_mounts *ret, struct err *err)
{
    cleanup_close int namespace_fd = runtime_guest_open_mounts(&first->guest);
    cleanup_close int root_fd = runtime_guest_open_root(&first->guest);
    struct cloning cloning = { .volume = volume, .namespace_fd = namespace_fd, .root_fd = root_fd };
    struct thread thread = { .is_started = false };
    int r = namespace_fd < 0 ? namespace_fd : root_fd < 0 ? root_fd : 0;

    if (r == 0)
        r = thread_start(&thread, "holt-clone", cloning_main, &cloning);
    if (r < 0)
        return err_sys(err, r, "reach the files of machine '%s'", first->id);
    thread_join(&thread);
    if (cloning.result < 0) {
        volume_mounts_done(&cloning.mounts);
        return err_sys(err, cloning.result, "share '%s' of machine '%s'",
                       cloning.target ? cloning.target : "/", first->id);
    }
    cloning.mounts.allows_setuid = volume_allows_setuid(volume);
    cloning.mounts.has_codebase = volume_has_codebase(volume);
    *ret = cloning.mounts;
    return 0;
}
