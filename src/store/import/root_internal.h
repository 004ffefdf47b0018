/* What the files of the import root share. */
#pragma once

#include <string.h>

#include "store/import/root.h"

/* The last component of a path. */
static inline const char *import_root_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Makes root->parent_fd the directory that path is in. Without make, a missing directory is
 * -ENOENT and err is not set. */
int import_root_enter(struct import_root *root, const char *path, bool make, struct err *err);

/* The same for a directory itself, never made. */
int import_root_enter_dir(struct import_root *root, const char *path, struct err *err);
