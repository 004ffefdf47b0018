/* Small allocations that abort when memory is exhausted. Sizes that a client controls use struct
 * buf. */
#pragma once

#include <stddef.h>

void *xcalloc(size_t count, size_t size);
/* Grows an array; the new elements are not initialized. */
void *xreallocarray(void *array, size_t count, size_t size);
char *xstrdup(const char *text);
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Overwrites a text and frees it. Accepts NULL. */
void wiped_free(char *text);
