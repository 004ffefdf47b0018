/* Pseudo-terminals of one devpts instance. */
#pragma once

#include <stdint.h>

/* Opens a new pair. devpts_fd is the root of the devpts mount, because the sandbox may have
 * replaced /dev/ptmx. */
int pty_open(int devpts_fd, int *ret_master_fd, int *ret_slave_fd);

/* Sets the window size; the foreground process group receives SIGWINCH. */
int pty_resize(int master_fd, uint16_t rows, uint16_t columns);
