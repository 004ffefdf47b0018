/* Listening sockets, bound by ourselves so that mode, owner and errors are ours. */
#pragma once

#include <stddef.h>

struct err;

/* A socket at path, mode 0660 and of group "holt" where that exists. Replaces what is there. */
int listen_unix(const char *path, int *ret_fd, struct err *err);

/* A socket at "ADDR:PORT" or "[ADDR]:PORT"; port 0 lets the kernel choose. */
int listen_tcp(const char *address, int *ret_fd, struct err *err);

/* Where a TCP socket listens, as "ADDR:PORT". */
void listen_describe(int fd, char *text, size_t size);

/* Sockets that whoever started us listens on already, as systemd's socket units do
 * (sd_listen_fds(3)): at most one of each kind, -EBADF where there is none. They are the caller's.
 */
struct listen_given {
    int unix_fd;
    int tcp_fd;
};
int listen_take_given(struct listen_given *ret, struct err *err);
