/* holt-init seat: see wire/seat.h. */
#pragma once

/* Serves requests on control_fd until the daemon closes it; starts the program that is program_fd.
 */
int seat_main(int control_fd, int program_fd);
