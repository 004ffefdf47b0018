/* The zygote: holt-init as a parent of sandboxes (see wire/zygote.h). */
#pragma once

#include <stdbool.h>

/* Serves requests on control_fd until the daemon closes it. program_fd is holt-init, for requests
 * that execute it again. Returns true in a child that continues as holt-init with its stream on
 * control_fd, false when the daemon has closed the socket. */
bool zygote_serve(int control_fd, int program_fd);
