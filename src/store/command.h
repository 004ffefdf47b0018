/* Runs the programs that manage storage: mkfs, zfs. Never through a shell, and bounded in time and
 * output. */
#pragma once

struct buf;

enum { COMMAND_STDERR_BYTES = 1024 };

/* How a program ended. Plain data. */
struct command_result {
    int status;                             /* exit status; -1: killed by a signal */
    char stderr_text[COMMAND_STDERR_BYTES]; /* beginning of its stderr */
};

/* Runs args[0], a path or found in the system's directories, until it exits. Returns 0 whatever its
 * status. Appends its stdout to output (NULL: discards it). Returns -ENOENT if there is no such
 * program; -ETIMEDOUT, or -ENOBUFS if output is full, after killing it. */
int command_run(const char *const args[], int timeout_ms, struct buf *output,
                struct command_result *ret);
