/* Pseudo terminals of one devpts instance. */
#pragma once

#include <stdint.h>

/* Opens a new pair. devpts_fd is the root of the devpts mount: /dev/ptmx could be anything by now.
 */
int pty_open(int devpts_fd, int *ret_master_fd, int *ret_slave_fd);

/* Sets the size; the foreground process group gets SIGWINCH. */
int pty_resize(int master_fd, uint16_t rows, uint16_t columns);
