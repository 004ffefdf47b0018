/* Moments on the command line. */
#pragma once

#include <stdint.h>

/* Parses "10m", which means ten minutes ago, or "2026-01-31T12:00:00Z", to milliseconds since 1970.
 * Returns 0 or -EINVAL. */
int when_parse(const char *text, uint64_t *ret_ms);
