/* The OCI bundle of a cell. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { BUNDLE_TEXT_MAX = 4096 };

/* Writes the configuration for runsc: /root as root, and the inner holt-init, which has these
 * capabilities and what it needs to enter the tree below. Returns 0, or -ENOBUFS if the text does
 * not fit. */
int bundle_write(uint64_t capabilities, char *text, size_t size);
