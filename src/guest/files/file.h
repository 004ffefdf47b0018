/* File workers: forks of holt-init that execute the daemon's file requests (wire/file.h) with the
 * rights of a process of the sandbox: in its namespaces and cgroup, behind its seccomp filter,
 * with its capabilities. They execute no program, so no file of the sandbox can replace them, and
 * no process of the sandbox can read their memory. A tool worker is the same but executes a
 * program that the daemon passes (src/tools): sealed, and unreadable in the sandbox. */
#pragma once

struct frame;
struct guest;

/* Starts the worker of a FRAME_FILES, whose descriptors are a cgroup, the socket to serve and
 * optionally a program. The worker reports success or failure on that socket. Takes ownership of
 * fds. */
void file_start(struct guest *guest, const struct frame *frame, const int *fds);
