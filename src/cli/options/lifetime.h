/* The values of --ttl and --idle-timeout. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Parses TIME or TIME:ACTION, as in "1h" or "1h:pause". *ret_action is the action, or NULL without
 * one. Returns 0 or -EINVAL. */
int lifetime_parse(const char *value, uint64_t *ret_ms, const char **ret_action);

/* The same for a change, where ":pause" changes the action alone: *ret_has_time is false then. */
int lifetime_parse_change(const char *value, bool *ret_has_time, uint64_t *ret_ms,
                          const char **ret_action);
