/* What the files of the import root share. */
#pragma once

#include "store/import_root.h"

/* Makes root->parent_fd the directory that path is in, and returns the last component of path.
 * Without make, a missing directory is -ENOENT and err is not set. */
int import_root_enter(struct import_root *root, const char *path, bool make, const char **ret_base,
                      struct err *err);

/* The same for a directory itself, never made. */
int import_root_enter_dir(struct import_root *root, const char *path, struct err *err);
