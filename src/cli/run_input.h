/* Passes stdin on to the process, in a thread and over a connection of its own. */
#pragma once

struct run_target;

/* Starts the thread and never waits for it: it ends with the program. 0 or -errno. */
int run_input_start(const struct run_target *target);
