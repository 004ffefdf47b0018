/* Paths as a model gives them, and what to tell it when one does not lead where it should. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "tools/tool.h"

/* The path with the workspace in front of a relative one. False when it is too long: then the reply
 * says so. */
bool path_full(const struct tool_text *path, char ret[PATH_MAX], struct tool_reply *reply);

/* Opens a regular file for reading; nothing else is ever opened, because opening may have effects
 * or wait. The descriptor, or a negative errno: then the reply says why. */
int path_open_file(const char *path, const char *full, struct stat *ret, struct tool_reply *reply);

/* "a directory", "a pipe", ...; NULL: a regular file. */
const char *path_kind(mode_t mode);

/* Says what kept it from being done: verb is "read", "write", ...; path is as it was given. Always
 * returns r. */
int path_refuse(struct tool_reply *reply, const char *verb, const char *path, const char *full,
                int r);
