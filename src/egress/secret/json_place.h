/* Finds one string in a JSON text by its JSON pointer (RFC 6901). */
#pragma once

#include <stddef.h>

/* Returns 1 with where the bytes between the quotes are, 0 if there is no string at the pointer, or
 * -EBADMSG for a text that is not JSON, is nested too deeply, or has a name on the way twice. */
int json_place_find(const char *text, size_t len, const char *pointer, size_t *ret_at,
                    size_t *ret_len);
