/* Remedies that the doctor applies with --fix: settings of the kernel until the next boot, modules
 * of the installed kernel and directories. None installs packages, changes files of the system or
 * ends anything. */
#pragma once

#include <stddef.h>

struct config;

/* Applies the remedy if it is needed, and writes what was done, or why it failed, to text. Leaves
 * text as it is if there was nothing to do. */
typedef void doctor_fix_fn(const struct config *config, char *text, size_t size);

/* Raises fs.file-max as holtd does when it starts. */
doctor_fix_fn doctor_fix_files;
/* Sets net.core.tstamp_allow_data to 0, as holtd does. */
doctor_fix_fn doctor_fix_stamps;
/* Loads the modules with which the kernel reports the memory of sockets. */
doctor_fix_fn doctor_fix_guard;
/* Makes the state directory and that of the socket. */
doctor_fix_fn doctor_fix_state;
