/* Expands the braces of a pattern: /{a,b}/c is /a/c and /b/c. */
#pragma once

#include <stddef.h>

struct arena;
struct err;

/* Writes at most `max` expansions into `ret`, in the order in which they stand in the pattern.
 * Fails with ERR_INVALID. */
int view_braces_expand(const char *pattern, struct arena *arena, char **ret, size_t max,
                       size_t *ret_count, struct err *err);
