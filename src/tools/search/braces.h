/* Brace expansion as in a shell: a{b,c{d,e}} is ab, acd and ace. */
#pragma once

#include <stddef.h>

enum { BRACES_MAX = 1024 };

struct braces {
    char **at;
    size_t *lens;
    size_t count;
};

/* Expands the braces of a pattern. Returns -E2BIG for more than BRACES_MAX results or a megabyte.
 */
int braces_expand(const char *pattern, size_t len, struct braces *ret);
void braces_done(struct braces *braces);
