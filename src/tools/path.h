/* Paths that a model gives, and error messages about them. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "tools/tool.h"

/* Makes an absolute path; a relative one starts at the workspace. Returns false and sets the error
 * of the reply if the path is too long. */
bool path_full(const struct tool_text *path, char ret[PATH_MAX], struct tool_reply *reply);

/* Opens a regular file for reading; other files are not opened, because that may block or have side
 * effects. Returns a descriptor, or -errno with the error of the reply set. */
int path_open_file(const char *path, const char *full, struct stat *ret, struct tool_reply *reply);

/* Returns "a directory", "a pipe", ..., or NULL for a regular file. */
const char *path_kind(mode_t mode);

/* Sets the error of the reply for r, a negative errno: verb is "read", "write", ...; path is as the
 * model gave it. Returns r. */
int path_refuse(struct tool_reply *reply, const char *verb, const char *path, const char *full,
                int r);
