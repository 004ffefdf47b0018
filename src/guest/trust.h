/* What makes programs in the sandbox trust the authority of this host: its certificate is laid over
 * the system's certificates when a root is mounted, and is in /dev/holt for programs that have
 * certificates of their own. None of it is in a layer. */
#pragma once

struct err;
struct message_root;

struct trust {
    int files_fd; /* filesystem of /dev/holt; -EBADF: no root had an authority yet */
    int agent_fd; /* socket that is to be bound there; -EBADF: none */
};

/* Takes a socket for the sandbox's ssh-agent: binds it in /dev/holt, over an earlier one, and
 * listens; before there is a /dev/holt, when there is one. */
void trust_set_agent(struct trust *trust, int fd);

/* Lays the authority of the message over the root at root_fd, whose /dev is still that of
 * old_root_fd. Does nothing if the message has none. A root without certificates of its own gets
 * those in /dev/holt alone. */
int trust_cover(struct trust *trust, int root_fd, int old_root_fd,
                const struct message_root *message, struct err *err);
