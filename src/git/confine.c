// SPDX-License-Identifier: Apache-2.0
#include "git/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/caps.h"
#include "kernel/mount.h"

enum { MEMORY_MAX = 1 << 30 };

/* Whatever the repository says, no program of it runs, and nobody is connected to. */
static int filter_install(void)
{
    static const int refused[] = { SYS_execve, SYS_execveat, SYS_socket, SYS_ptrace, SYS_unshare,
                                   SYS_mount,  SYS_setns,    SYS_bpf,    SYS_keyctl };
    struct sock_filter code[2 * ARRAY_SIZE(refused) + 2];
    struct sock_fprog program = { .filter = code };
    unsigned short count = 0;

    code[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                 (uint32_t)offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        code[count++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)refused[i], 0, 1);
        code[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    code[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program.len = count;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

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

static int owner_become(const struct stat *st)
{
    if (setgroups(0, NULL) < 0 || setresgid(st->st_gid, st->st_gid, st->st_gid) < 0 ||
        setresuid(st->st_uid, st->st_uid, st->st_uid) < 0)
        return -errno;
    return caps_set(0, 0, 0);
}

int git_confine(int dir_fd)
{
    const struct rlimit core = { 0, 0 };
    const struct rlimit __attribute__((unused)) memory = { MEMORY_MAX, MEMORY_MAX };
    struct stat st;
    int r = fstat(dir_fd, &st) < 0 ? -errno : root_change(dir_fd);

    if (r == 0)
        r = caps_limit(0);
    if (r == 0)
        r = owner_become(&st);
    if (r == 0 && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                   prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &core) < 0))
        r = -errno;
#ifndef __SANITIZE_ADDRESS__ /* which maps terabytes */
    if (r == 0 && setrlimit(RLIMIT_DATA, &memory) < 0)
        r = -errno;
#endif
    return r == 0 ? filter_install() : r;
}
