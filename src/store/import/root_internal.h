/* Internals shared by the files of the import root. */
#pragma once

#include <string.h>
#include <sys/stat.h>

#include "store/import/root.h"

/* Returns the last component of a path. */
static inline const char *import_root_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Makes root->parent_fd the directory that contains path. Without make, a missing directory gives
 * -ENOENT without setting err. */
int import_root_enter(struct import_root *root, const char *path, bool make, struct err *err);

/* Does the same for the directory of a whiteout in an upper layer. */
int import_root_enter_whiteout(struct import_root *root, const char *path, struct err *err);

/* Makes a directory of an upper layer hide what is below it. */
int import_root_hide_below(struct import_root *root, int fd, struct err *err);

/* Returns whether a file is a whiteout of overlayfs. */
bool import_is_whiteout(const struct stat *st);

/* Does the same for the directory path itself, which is never created. */
int import_root_enter_dir(struct import_root *root, const char *path, struct err *err);
