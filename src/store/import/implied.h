/* Directories that a layer implies, because it has files in them, without an entry of their own. */
#pragma once

#include <stddef.h>

struct err;
struct import_root;

/* Gives the implied directories of an upper layer the owners, modes, times and attributes of those
 * in the layers below (topmost first). Returns 1 if one of them is something else there, for which
 * the layer has to be applied to what is below. */
int implied_settle(struct import_root *root, const int *below_fds, size_t count, struct err *err);
