/* .dockerignore: which files of a directory are no part of a build's context. */
#pragma once

#include <stdbool.h>

struct ignore;

/* Parses the lines of a file. NULL: there is none. */
struct ignore *ignore_new(const char *text);
void ignore_free(struct ignore *ignore);

/* Returns whether a path, relative to the directory, is left out: the last pattern that matches it
 * or a directory above it decides. Accepts NULL. */
bool ignore_has(const struct ignore *ignore, const char *path);

/* Returns whether all below a directory that is left out is left out, too. */
bool ignore_is_final(const struct ignore *ignore);
