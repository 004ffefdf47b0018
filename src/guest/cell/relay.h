/* Processes of the cell, as the outer holt-init keeps them: see guest/cell/cell.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct cell;
struct frame;
struct relay;

/* Adds a process and its stand-in. Takes the cgroup. */
struct relay *relay_add(struct cell *cell, uint32_t id, int cgroup_fd);

/* Returns the process with this id, or NULL. */
struct relay *relay_find(const struct cell *cell, uint32_t id);

/* Removes a process. */
void relay_free(struct cell *cell, struct relay *relay);

/* Starts a stand-in in the cgroup of the process. */
void relay_stand_in(struct relay *relay);

/* The process has ended: ends its stand-in. */
void relay_end(struct relay *relay);

/* Keep what the next daemon has to know in case the cell dies: from frames of the daemon, and from
 * those of the inner holt-init. The latter returns false for a frame that it never sends. */
void relay_note_request(struct relay *relay, const struct frame *frame);
bool relay_note_reply(struct relay *relay, const struct frame *frame);

/* Append the state of a process that was lost with the cell, and its end: FAILED if it was not
 * started, otherwise EXITED as by SIGKILL. Return 0 or -ENOBUFS. */
int relay_put_state(const struct relay *relay, struct buf *out);
int relay_put_loss(const struct relay *relay, struct buf *out);
