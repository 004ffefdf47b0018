/* holt-init zygote: see wire/zygote.h. */
#pragma once

#include <stdbool.h>

/* Serves requests on control_fd until the daemon closes it. program_fd is holt-init, for requests
 * that run it again. Returns true in a child that is to go on as holt-init, with its stream in
 * control_fd's place; false when all is over. */
bool zygote_serve(int control_fd, int program_fd);
