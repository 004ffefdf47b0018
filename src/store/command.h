/* Runs the programs that storage is made with: mkfs, zfs. Never through a shell, never for longer
 * than they are given, and never with more output than the caller has room for. */
#pragma once

struct buf;

enum { COMMAND_COMPLAINT_BYTES = 1024 };

/* How a program ended. Plain data. */
struct command_end {
    int status;                              /* its exit status; -1: a signal ended it */
    char complaint[COMMAND_COMPLAINT_BYTES]; /* the beginning of what it wrote to stderr */
};

/* Runs args[0], which is looked for in the system's own directories, until it ends: 0 whatever its
 * status. What it prints is added to output (NULL: nobody's). -ENOENT when there is no such
 * program; -ETIMEDOUT, or -ENOBUFS when output is full, and then it has been killed. */
int command_run(const char *const args[], int timeout_ms, struct buf *output,
                struct command_end *ret);
