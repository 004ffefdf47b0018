/* File workers: copies of holt-init that do what the daemon wants done to files (wire/file.h), as
 * any process of the sandbox would: in its namespaces and control group, behind its filter, with
 * its capabilities. They run no program, so nothing in the sandbox's files can take their place,
 * and nobody in the sandbox can look into them. A tool worker is the same, but goes on as a program
 * that the daemon passes (src/tools), sealed, and readable to nobody in the sandbox. */
#pragma once

struct frame;
struct guest;

/* Starts one as a FRAME_FILES says, with a control group, the socket that it serves, and the
 * program if there is one; whether that worked is told over that socket. Owns the descriptors. */
void file_start(struct guest *guest, const struct frame *frame, const int *fds);
