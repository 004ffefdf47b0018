/* What .gitignore files say, as git reads them. A directory has the rules of its own file and those
 * of the directories above it, up to the root of the repository; the nearest rule that matches
 * decides, and of one file the last. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ignore;

/* The rules of one more directory below those of parent (NULL: none), which must outlive them.
 * `text` is what its .gitignore contains; `base` is the directory's path, from where all paths that
 * are asked about begin, "" for that place itself, else "a/b/". */
struct ignore *ignore_new(const struct ignore *parent, const char *base, const char *text,
                          size_t len);
void ignore_free(struct ignore *ignore);

/* The same from a file; NULL when there is none that can be read. */
struct ignore *ignore_read(const struct ignore *parent, const char *base, int dir_fd,
                           const char *file);

/* Whether a path, in a directory that is not ignored itself, is. NULL ignores nothing. */
bool ignore_matches(const struct ignore *ignore, const char *path, bool is_dir);

/* The rules that hold in the directory `path` because of what is above it in the same repository,
 * and the repository's own excludes. They form a chain through ignore_parent. `*ret_prefix`, to be
 * freed, is where the directory is in the repository: "" or "a/b/". NULL when there are none. */
struct ignore *ignore_of_repository(const char *path, char **ret_prefix);
struct ignore *ignore_parent(const struct ignore *ignore);
