/* The viewers of a process with a terminal: clients that show it on terminals of their own. Its
 * size is the smallest of theirs, in each direction, so that no viewer misses a part of it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct process;

struct terminal_size {
    uint16_t rows, columns;
};

/* One viewer, in the memory of its caller. Zero-initialised: none. */
struct viewer {
    struct process *process; /* referenced; NULL: not a viewer */
    struct viewer *next;     /* in the process's list, under the machine's lock, as all below */
    uint64_t number;         /* names it in requests; never 0, never used again */
    struct terminal_size size;
};

/* Adds a viewer, which stays until viewer_leave. The owner is the client that the process was
 * started for: a size without a viewer is taken for the owner's. ERR_INVALID for a process without
 * a terminal. */
int viewer_join(struct viewer *viewer, struct process *process, struct terminal_size size,
                bool is_owner, struct err *err);

/* Removes a viewer; the others then determine the size. Without others the size stays. Accepts one
 * that never joined. */
void viewer_leave(struct viewer *viewer);

/* Whether this is the viewer that came first of those that are there: a program that asks its
 * terminal something gets that one's answer, and no other. */
bool viewer_is_first(struct process *process, uint64_t number);

/* Changes the size of a viewer. Number 0 means a client that is no viewer: its size is taken for
 * the owner's, and without one it is that of the terminal until a viewer comes, changes or leaves.
 * ERR_NOT_FOUND if there is no such viewer, ERR_INVALID for a process without a terminal. */
int viewer_resize(struct process *process, uint64_t number, struct terminal_size size,
                  struct err *err);

/* Sends the size again, to a terminal that a restart has created. */
void viewers_restore(struct process *process);
