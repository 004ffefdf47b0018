/* Attaching to a process that runs already. */
#pragma once

struct connection;

/* Shows the output of a process, starting with the latest, and passes on input and the size of our
 * terminal until the process ends or the user detaches. Returns the exit status: that of the
 * process, or 0 after detaching. */
int attach_run(struct connection *connection, const char *sandbox, const char *process);
