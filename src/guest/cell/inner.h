/* The holt-init inside a cell: see guest/cell/cell.h. */
#pragma once

#include <stdbool.h>

struct frame;
struct guest;

/* Makes a guest that uses the container as it is, and can start processes; one that is parked has
 * to enter its root first. Its stream is its standard input, which becomes control_fd. Returns 0 or
 * -errno. */
int inner_boot(struct guest *guest, int control_fd, bool is_parked);

/* Enters the root, which has been attached below that of the container. Returns false if the frame
 * is malformed; ends the process, and so the container, if it cannot. */
bool inner_enter(struct guest *guest, const struct frame *frame);
