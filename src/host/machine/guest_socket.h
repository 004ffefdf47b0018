/* The sockets on which each holt-init waits for a restarted daemon: guests/MACHINE.sock, in a
 * directory of root's. */
#pragma once

#include <stdbool.h>

/* Creates a listening socket, in place of a stale one. Returns a descriptor or -errno. */
int guest_socket_listen(int dir_fd, const char *machine);

/* Connects to a machine's socket. Returns a descriptor or -errno (-ECONNREFUSED, -ENOENT: no
 * holt-init listens). */
int guest_socket_connect(int dir_fd, const char *machine);

void guest_socket_remove(int dir_fd, const char *machine);

/* Removes the sockets of machines for which keep() returns false. Returns 0 or -errno. */
int guest_socket_sweep(int dir_fd, bool (*keep)(const char *machine, void *context), void *context);
