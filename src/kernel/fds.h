/* Descriptors that travel over a unix socket with the bytes they belong to. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

enum { FDS_MAX = 20 };

/* Sends bytes, and count descriptors with the first of them: bytes sent, or -errno. Never SIGPIPE.
 * flags are sendmsg's. */
ssize_t fds_send(int socket_fd, const void *data, size_t len, int flags, const int *fds,
                 size_t count);

/* Receives bytes and whatever came with them, close-on-exec: bytes, 0 at the end, or -errno. The
 * descriptors, FDS_MAX at most, are the caller's. flags are recvmsg's. */
ssize_t fds_receive(int socket_fd, void *data, size_t size, int flags, int *ret_fds,
                    size_t *ret_count);
