/* Moving the whole sandbox to another root while holt-init goes on. */
#pragma once

struct err;
struct identity;
struct message_root;

/* Attaches the mounts (fds[0] is the new "/"), takes /proc, /dev and /sys along and lets go of the
 * old root. Every process of the sandbox that is still there sees the new one. */
int root_enter(const struct message_root *message, const int *fds, const struct identity *identity,
               struct err *err);
