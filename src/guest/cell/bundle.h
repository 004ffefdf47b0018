/* The OCI bundle of a cell. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BUNDLE_TEXT_MAX = 4096 };

/* Writes the configuration for runsc: the tree at /tree as root, and the inner holt-init, which has
 * these capabilities. has_tmp: the tree's /tmp is also at /tmp. Returns 0, or -errno if the host
 * name cannot be read or the text does not fit. */
int bundle_write(uint64_t capabilities, bool has_tmp, char *text, size_t size);
