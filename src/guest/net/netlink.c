// SPDX-License-Identifier: Apache-2.0
#include "guest/net/netlink.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guest/resources.h"
#include "kernel/seccomp.h"

/* Linux 6.6; a kernel without it ignores the request. */
#define NOTIF_SET_FLAGS SECCOMP_IOW(4, uint64_t)
#define NOTIF_SYNC_WAKE_UP 1

enum {
    SOCKETS_MAX = 64, /* each can hold twice net.core.rmem_max, 8 MiB since Linux 6.17 */
    PROTOCOLS_BYTES = 8192,
    FAMILY = offsetof(struct seccomp_data, args),
    KEY = FAMILY + sizeof(uint32_t),         /* the half of the register that the kernel ignores */
    OWN_KEY = FAMILY + 3 * sizeof(uint64_t), /* the fourth argument, which the kernel ignores */
};

static int filter_install(void)
{
    static struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FAMILY),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 7),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, KEY),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SECCOMP_NETLINK_KEY, 5, 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_getaffinity, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sysinfo, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, OWN_KEY),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SECCOMP_OWN_KEY, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = { .len = ARRAY_SIZE(code), .filter = code };
    long fd =
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);

    return fd < 0 ? -errno : (int)fd;
}

int netlink_guard_open(struct netlink_guard *ret)
{
    cleanup_close int protocols_fd = open("/proc/self/net/protocols", O_RDONLY | O_CLOEXEC);
    int fd;

    *ret = (struct netlink_guard){ .watch = { .kind = WATCH_NETLINK, .fd = -EBADF },
                                   .protocols_fd = -EBADF };
    if (protocols_fd < 0)
        return -errno;
    fd = filter_install();
    if (fd < 0)
        return fd;
    (void)syscall(SYS_ioctl, fd, NOTIF_SET_FLAGS, NOTIF_SYNC_WAKE_UP);
    ret->watch.fd = fd;
    ret->protocols_fd = TAKE_FD(protocols_fd);
    return 0;
}

/* Reads how many netlink sockets this network namespace has; a line is "NETLINK SIZE SOCKETS". */
static long sockets_count(int protocols_fd)
{
    static char text[PROTOCOLS_BYTES];
    ssize_t n = pread(protocols_fd, text, sizeof(text) - 1, 0);
    char *line;

    if (n < 0)
        return SOCKETS_MAX;
    text[n] = '\0';
    line = strstr(text, "\nNETLINK ");
    if (!line)
        return 0;
    (void)strtol(line + strlen("\nNETLINK "), &line, 10);
    return strtol(line, NULL, 10);
}

/* The filter lets this call pass because of the key, which processes may not use. */
static int socket_make(const struct seccomp_notif *request)
{
    uint64_t family = (uint64_t)SECCOMP_NETLINK_KEY << 32 | AF_NETLINK;
    long fd = syscall(SYS_socket, family, request->data.args[1], request->data.args[2]);

    return fd < 0 ? -errno : (int)fd;
}

/* Gives the process the descriptor as the result of its call. Waits until it has taken it, which a
 * stopped or killed process does not hold up. */
static int socket_give(int listener_fd, const struct seccomp_notif *request, int fd)
{
    const struct seccomp_notif_addfd gift = {
        .id = request->id,
        .flags = SECCOMP_ADDFD_FLAG_SEND,
        .srcfd = (uint32_t)fd,
        .newfd_flags = request->data.args[1] & SOCK_CLOEXEC ? O_CLOEXEC : 0,
    };

    return syscall(SYS_ioctl, listener_fd, SECCOMP_IOCTL_NOTIF_ADDFD, &gift) < 0 ? -errno : 0;
}

/* Returns 0 if the process has got its socket, otherwise -errno. */
static int socket_answer(struct netlink_guard *guard, const struct seccomp_notif *request)
{
    cleanup_close int fd = -EBADF;

    if (sockets_count(guard->protocols_fd) >= SOCKETS_MAX)
        return -ENOBUFS;
    fd = socket_make(request);
    return fd < 0 ? fd : socket_give(guard->watch.fd, request, fd);
}

void netlink_guard_ready(struct netlink_guard *guard, struct resources *resources)
{
    struct seccomp_notif request = { 0 };
    struct seccomp_notif_resp reply = { 0 };
    bool is_kernels = false;
    long r;

    if (syscall(SYS_ioctl, guard->watch.fd, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
        return; /* the process has ended */
    if (request.data.nr == SYS_socket) {
        r = socket_answer(guard, &request);
        if (r == 0)
            return;
    } else {
        r = resources_answer(resources, &request, guard->watch.fd, &is_kernels);
    }
    reply.id = request.id;
    reply.flags = is_kernels ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
    reply.error = r < 0 && !is_kernels ? (int)r : 0;
    reply.val = r > 0 && !is_kernels ? r : 0;
    (void)syscall(SYS_ioctl, guard->watch.fd, SECCOMP_IOCTL_NOTIF_SEND, &reply);
}
