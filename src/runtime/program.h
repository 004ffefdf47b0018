/* Programs of Holt's own that run inside sandboxes: holt-init, and what does the tools' work. */
#pragma once

struct err;

/* Reads a program from path into memory that is sealed, so that nobody can write to it through
 * /proc/PID/exe (CVE-2019-5736), and that nobody may read, so that the kernel keeps the running
 * image from everyone in the sandbox's user namespace. */
int program_load(const char *name, const char *path, int *ret_fd, struct err *err);
