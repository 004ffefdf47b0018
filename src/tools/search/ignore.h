/* The rules of .gitignore files, with the semantics of git. The rules of its own file apply to a
 * directory, and those of its parents up to the root of the repository. The nearest file with a
 * matching rule decides, and in one file the last matching rule. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ignore;

/* Makes the rules of a directory in addition to those of parent (NULL: none), which must outlive
 * them. `text` is the content of its .gitignore; `base` is the path of the directory relative to
 * the root of all paths, "" or "a/b/". */
struct ignore *ignore_new(const struct ignore *parent, const char *base, const char *text,
                          size_t len);
void ignore_free(struct ignore *ignore);

/* Makes the rules from a file; returns NULL if it cannot be read. */
struct ignore *ignore_read(const struct ignore *parent, const char *base, int dir_fd,
                           const char *file);

/* Returns whether a path is ignored; its directory is not. NULL ignores nothing. */
bool ignore_matches(const struct ignore *ignore, const char *path, bool is_dir);

/* Returns the rules for the directory `path` from its parents in the same repository and from
 * .git/info/exclude, as a chain through ignore_parent; NULL: none. *ret_prefix is the path of the
 * directory in the repository, "" or "a/b/", or NULL outside of one; the caller frees it. */
struct ignore *ignore_of_repository(const char *path, char **ret_prefix);
struct ignore *ignore_parent(const struct ignore *ignore);
