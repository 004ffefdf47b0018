/* The holt-init inside a cell: see guest/cell/cell.h. */
#pragma once

struct guest;

/* Makes a guest that uses the container as it is: it has a root, and can start processes. Its
 * stream is its standard input, which becomes control_fd. Returns 0 or -errno. */
int inner_boot(struct guest *guest, int control_fd);
