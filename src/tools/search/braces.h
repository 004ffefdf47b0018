/* Braces of a pattern, as the shell has them: a{b,c{d,e}} is ab, acd and ace. */
#pragma once

#include <stddef.h>

enum { BRACES_MAX = 1024 };

struct braces {
    char **at;
    size_t *lens;
    size_t count;
};

/* 0, or -E2BIG when there would be more than BRACES_MAX texts or a megabyte of them. */
int braces_expand(const char *pattern, size_t len, struct braces *ret);
void braces_done(struct braces *braces);
