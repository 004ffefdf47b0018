/* Staying with a process that is there already. */
#pragma once

#include <jansson.h>

struct connection;
struct run_setup;

struct attach {
    const char *sandbox; /* id or name */
    const char *process; /* id */
};

/* Shows what the process writes, and the last of what it has written; passes on input, the size of
 * our terminal and what is typed there, until the process ends or the user leaves: the exit status,
 * which is the process's own, or 0 after leaving. */
int attach_run(const struct attach *what);

/* Opens an Attach and runs the session that the rest of the setup asks for: the exit status. Takes
 * the request; NULL stands for one with an argument that is not UTF-8. */
int attach_session(const struct connection *connection, json_t *request, struct run_setup *setup);
