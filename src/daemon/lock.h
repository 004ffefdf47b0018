/* One daemon per directory. */
#pragma once

struct err;

struct lock_spec {
    const char *dir;
    const char *name;   /* of the file in it */
    const char *option; /* that gave the directory, for the message */
};

/* Locks the file for as long as the descriptor is open and writes our pid into it. ERR_BUSY names
 * the option and the pid of the daemon that has it. */
int lock_take(const struct lock_spec *spec, int *ret_fd, struct err *err);
