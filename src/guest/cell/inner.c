// SPDX-License-Identifier: Apache-2.0
#include "guest/cell/inner.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/guest.h"
#include "kernel/caps.h"

/* gVisor emulates io_uring, of which the host's filter knows nothing: its emulation is the part of
 * gVisor that is tested least, and no program needs it. Other calls cost one comparison each. */
static const struct sock_filter no_uring[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, SYS_io_uring_setup, 0, 2),
    BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, SYS_io_uring_register, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

int inner_boot(struct guest *guest, int control_fd)
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
    guest->is_inner = guest->is_booted = guest->is_rooted = true;
    /* runsc takes CAP_NET_RAW away. */
    guest->rules.capabilities = caps_permitted();
    guest->rules.filter = (const char *)no_uring;
    guest->rules.filter_len = sizeof(no_uring);
    return 0;
}
