/* Counts descriptors, and passes them over a unix socket together with the bytes that they belong
 * to. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

enum { FDS_MAX = 20 };

/* Counts the descriptors that this process has open, and how many it may have. Returns 0 or -errno.
 * Takes a microsecond and no descriptor. */
int fds_count(unsigned *ret_open, unsigned *ret_max);

/* Sends bytes, with count descriptors attached to the first. Returns the bytes sent or -errno.
 * Never raises SIGPIPE. flags are those of sendmsg. */
ssize_t fds_send(int socket_fd, const void *data, size_t len, int flags, const int *fds,
                 size_t count);

/* Receives bytes and the attached descriptors, close-on-exec. Returns the bytes received, 0 at end
 * of file, or -errno. The caller owns the descriptors, at most FDS_MAX. flags are those of
 * recvmsg. */
ssize_t fds_receive(int socket_fd, void *data, size_t size, int flags, int *ret_fds,
                    size_t *ret_count);
