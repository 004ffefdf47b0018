/* The programs that Holt runs inside sandboxes: holt-init and holt-tools. */
#pragma once

struct err;

/* Finds a program next to this one, as in a build tree, or in ../libexec/holt. The caller frees
 * *ret. */
int program_find(const char *program, char **ret, struct err *err);

/* Copies a program into a sealed memfd, so that no process can write to it through /proc/PID/exe
 * (CVE-2019-5736). The memfd is execute-only, so that the kernel makes the running image unreadable
 * for the sandbox's user namespace. */
int program_load(const char *name, const char *path, int *ret_fd, struct err *err);
