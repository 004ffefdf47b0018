/* Moving the whole sandbox to another root while holt-init goes on. */
#pragma once

struct err;
struct identity;
struct message_root;

/* Attaches the mounts (fds[0] is the new "/") and takes /proc, /dev and /sys along. Every process
 * of the sandbox that is still there sees the new root. What is left of the old one goes with
 * root_leave_old, which must follow before anything else is done. */
int root_enter(const struct message_root *message, const int *fds, const struct identity *identity,
               struct err *err);
void root_leave_old(void);
