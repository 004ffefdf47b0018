/* The programs of Holt beside holtd, and those that run inside sandboxes: holt-init, holt-tools. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct err;

/* Finds a program next to this one, as in a build tree, or in ../libexec/holt. The caller frees
 * *ret. */
int program_find(const char *program, char **ret, struct err *err);

/* Copies a program into a sealed memfd, so that no process can write to it through /proc/PID/exe
 * (CVE-2019-5736). The memfd is execute-only, so that the kernel makes the running image unreadable
 * for the sandbox's user namespace. */
int program_load(const char *name, const char *path, int *ret_fd, struct err *err);

/* Starts a program of Holt beside holtd, without arguments and environment. It gets the descriptors
 * as 3, 4, ... and no others. The caller waits for it. */
int program_start(const char *name, const int *fds, size_t fd_count, pid_t *ret_pid, int *ret_pidfd,
                  struct err *err);
