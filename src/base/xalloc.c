// SPDX-License-Identifier: Apache-2.0
#include "base/xalloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *or_abort(void *ptr)
{
    if (!ptr)
        abort();
    return ptr;
}

void *xcalloc(size_t count, size_t size)
{
    return or_abort(calloc(count, size));
}

void *xreallocarray(void *array, size_t count, size_t size)
{
    return or_abort(reallocarray(array, count, size));
}

char *xstrdup(const char *text)
{
    return or_abort(strdup(text));
}

char *xasprintf(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    int len;

    va_start(args, format);
    len = vasprintf(&text, format, args);
    va_end(args);
    return or_abort(len < 0 ? NULL : text);
}

void wiped_free(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}
