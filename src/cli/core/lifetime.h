/* The values of --ttl and --idle-timeout. */
#pragma once

#include <stdint.h>

/* Parses TIME or TIME:ACTION, as in "1h" or "1h:pause". *ret_action is the action, or NULL without
 * one. Returns 0 or -EINVAL. */
int lifetime_parse(const char *value, uint64_t *ret_ms, const char **ret_action);
