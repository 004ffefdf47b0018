// SPDX-License-Identifier: Apache-2.0
#include "git/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/confine.h"
#include "kernel/mount.h"

enum { MEMORY_MAX = 1 << 30 };

/* Whatever the repository says, no program of it runs, and nobody is connected to. */
static const int refused_calls[] = {
    SYS_execve, SYS_execveat, SYS_socket, SYS_ptrace, SYS_unshare,
    SYS_mount,  SYS_setns,    SYS_bpf,    SYS_keyctl,
};

/* A work tree or objects outside of the directory are then not there. */
static int root_change(int dir_fd)
{
    cleanup_close int fd = mount_clone(dir_fd, "", false), root_fd = -EBADF;
    int r;

    if (fd < 0)
        return fd;
    if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return -errno;
    root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return -errno;
    r = mount_attach(fd, root_fd);
    if (r == 0)
        r = mount_pivot(fd);
    return r < 0 || chdir("/") == 0 ? r : -errno;
}

int git_confine(int dir_fd)
{
    struct confine_privileges kept = { .memory_max = MEMORY_MAX };
    struct stat st;
    int r = fstat(dir_fd, &st) < 0 ? -errno : root_change(dir_fd);

    if (r == 0) {
        kept.uid = st.st_uid;
        kept.gid = st.st_gid;
        r = confine_privileges(&kept);
    }
    return r < 0 ? r : confine_calls_refuse(refused_calls, ARRAY_SIZE(refused_calls));
}
