/* The sockets on which holt-inits wait for a daemon that comes back: guests/MACHINE.sock, where
 * nobody but root may go. */
#pragma once

#include <stdbool.h>

/* A new listening socket; a stale file in its place is removed. A descriptor or -errno. */
int guest_socket_listen(int dir_fd, const char *machine);

/* A connection to it: a descriptor, or -errno (-ECONNREFUSED and -ENOENT: nobody listens). */
int guest_socket_connect(int dir_fd, const char *machine);

void guest_socket_remove(int dir_fd, const char *machine);

/* Removes the sockets of machines that are not kept: 0 or -errno. */
int guest_socket_sweep(int dir_fd, bool (*keep)(const char *machine, void *context), void *context);
