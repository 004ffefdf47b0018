/* What the end of a process means for the user of `holt run`. */
#pragma once

#include <jansson.h>

/* Says in one line what the exit status alone would hide, and returns the exit status. */
int run_outcome(const char *command, const json_t *ended);
