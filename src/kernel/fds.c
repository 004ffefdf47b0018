// SPDX-License-Identifier: Apache-2.0
#include "kernel/fds.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* Room for one header, which is all that a unix socket delivers at a time. */
union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
};

/* Since Linux 6.2 the size of the directory is the number of descriptors. */
int fds_count(unsigned *ret_open, unsigned *ret_max)
{
    struct rlimit files;
    struct stat st;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || stat("/proc/self/fd", &st) < 0)
        return -errno;
    *ret_open = (unsigned)st.st_size;
    *ret_max = files.rlim_cur < UINT32_MAX ? (unsigned)files.rlim_cur : UINT32_MAX;
    return 0;
}

ssize_t fds_send(int socket_fd, const void *data, size_t len, int flags, const int *fds,
                 size_t count)
{
    union control control;
    /* The kernel's struct lacks const. */
    struct iovec part = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    ssize_t n;

    if (count > FDS_MAX)
        return -EINVAL;
    if (count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        control.header = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET,
            .cmsg_type = SCM_RIGHTS,
            .cmsg_len = CMSG_LEN(sizeof(int) * count),
        };
        memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * count);
    }
    do {
        n = sendmsg(socket_fd, &message, flags | MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

ssize_t fds_receive(int socket_fd, void *data, size_t size, int flags, int *ret_fds,
                    size_t *ret_count)
{
    union control control;
    struct iovec part = { .iov_base = data, .iov_len = size };
    struct msghdr message = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes),
    };
    struct cmsghdr *header;
    ssize_t n;

    *ret_count = 0;
    do {
        n = recvmsg(socket_fd, &message, flags | MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        *ret_count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(ret_fds, CMSG_DATA(header), *ret_count * sizeof(int));
    }
    return n;
}
