/* Listening sockets. Holt binds them itself, to control mode, owner and error texts. */
#pragma once

#include <stddef.h>

struct err;

/* Listens at path with mode 0660, and group "holt" if it exists. Replaces an existing file. */
int listen_unix(const char *path, int *ret_fd, struct err *err);

/* Listens at "ADDR:PORT" or "[ADDR]:PORT"; port 0 lets the kernel choose. */
int listen_tcp(const char *address, int *ret_fd, struct err *err);

/* Writes the address of a TCP socket as "ADDR:PORT". */
void listen_describe(int fd, char *text, size_t size);

/* Takes the listening sockets passed by systemd (sd_listen_fds(3)): at most one of each kind,
 * -EBADF for none. The caller owns them. */
struct listen_given {
    int unix_fd;
    int tcp_fd;
};
int listen_take_given(struct listen_given *ret, struct err *err);
