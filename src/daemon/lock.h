/* Lock files: one daemon per directory. */
#pragma once

struct err;

struct lock_spec {
    const char *dir;
    const char *name;   /* of the file in it */
    const char *option; /* the option that set the directory, for messages */
};

/* Locks the file while the descriptor is open, and writes our pid into it. ERR_BUSY names the
 * option and the pid of the other daemon. */
int lock_take(const struct lock_spec *spec, int *ret_fd, struct err *err);
