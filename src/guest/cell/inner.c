// SPDX-License-Identifier: Apache-2.0
#include "guest/cell/inner.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/guest.h"
#include "kernel/caps.h"
#include "wire/message.h"

#define TREE "/tree"

enum { MOUNT_READ_ONLY = 1, MOUNT_BIND = 1 << 12 };

/* gVisor emulates io_uring, of which the host's filter knows nothing: its emulation is the part of
 * gVisor that is tested least, and no program needs it. Other calls cost one comparison each. */
static const struct sock_filter no_uring[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, SYS_io_uring_setup, 0, 2),
    BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, SYS_io_uring_register, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

int inner_boot(struct guest *guest, int control_fd, bool is_parked)
{
    struct boot_result *base = &guest->base;

    base->identity.files_fd = base->identity.etc_fd = -EBADF;
    base->identity.trust.files_fd = base->identity.trust.agent_fd = -EBADF;
    base->resources.watch.fd = base->resources.dir_fd = -EBADF;
    for (int i = 0; i < RESOURCE_FILES; i++)
        base->resources.files[i] = -EBADF;
    if (dup3(STDIN_FILENO, control_fd, O_CLOEXEC) < 0)
        return -errno;
    base->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    base->devpts_fd = open("/dev/pts", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (base->null_fd < 0 || base->devpts_fd < 0)
        return -errno;
    for (int fd = 0; fd < 3; fd++)
        if (dup2(base->null_fd, fd) < 0)
            return -errno;
    guest->is_inner = guest->is_booted = true;
    guest->is_rooted = !is_parked;
    /* runsc takes CAP_NET_RAW away. */
    guest->rules.capabilities = caps_permitted() & ~(1ULL << CAP_SYS_ADMIN);
    guest->rules.filter = (const char *)no_uring;
    guest->rules.filter_len = sizeof(no_uring);
    return 0;
}

/* What the kernel provides: gVisor's, over empty directories of the tree. Its devices and terminals
 * are the same wherever they are mounted. */
static const struct {
    const char *source, *target, *type, *options;
    unsigned long flags;
} mounts[] = {
    { "none", TREE "/proc", "proc", NULL, 0 },
    { "none", TREE "/sys", "sysfs", NULL, MOUNT_READ_ONLY },
    { "none", TREE "/dev", "devtmpfs", NULL, 0 },
    { "/dev/pts", TREE "/dev/pts", NULL, NULL, MOUNT_BIND }, /* gVisor lets nobody mount devpts */
    { "none", TREE "/dev/shm", "tmpfs", "mode=1777", 0 },
};

static int tree_enter(const char *hostname)
{
    for (size_t i = 0; i < ARRAY_SIZE(mounts); i++)
        if (syscall(SYS_mount, mounts[i].source, mounts[i].target, mounts[i].type, mounts[i].flags,
                    mounts[i].options) < 0)
            return -errno;
    if (sethostname(hostname, strlen(hostname)) < 0 || chroot(TREE) < 0 || chdir("/") < 0)
        return -errno;
    return 0;
}

bool inner_enter(struct guest *guest, const struct frame *frame)
{
    const uint64_t keep = guest->rules.capabilities;
    const char *hostname;

    if (guest->is_rooted || !message_get_enter(frame, &hostname))
        return false;
    if (tree_enter(hostname) < 0 || prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0) < 0 ||
        caps_set(keep, keep, 0) < 0)
        _exit(1);
    guest->is_rooted = true;
    return true;
}
