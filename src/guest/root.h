/* Moves the whole sandbox to another root while holt-init keeps running. */
#pragma once

struct err;
struct identity;
struct message_root;

/* Attaches the mounts (fds[0] is the new "/"), moves /proc, /dev and /sys over and unmounts the
 * old root. Existing processes of the sandbox see the new root. */
int root_enter(const struct message_root *message, const int *fds, struct identity *identity,
               struct err *err);
