/* Paths of rules: "*" stands for characters other than '/', "**" for any. */
#pragma once

#include <stdbool.h>

/* Returns NULL, or the reason why a text is not a path for a rule. */
const char *net_glob_check(const char *glob);

/* Return whether the path of a request matches. A path that could be read in two ways ("..", "//",
 * encoded slashes) is never allowed by a path, and denied by every one. */
bool net_glob_allows(const char *glob, const char *path);
bool net_glob_denies(const char *glob, const char *path);
