// SPDX-License-Identifier: Apache-2.0
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUF_FIRST_CAPACITY = 256 };

void buf_done(struct buf *buf)
{
    free(buf->data);
    buf->data = NULL;
    buf->len = buf->cap = 0;
}

void buf_clear(struct buf *buf)
{
    buf->len = 0;
    if (buf->data)
        buf->data[0] = '\0';
}

int buf_reserve(struct buf *buf, size_t more)
{
    size_t cap = buf->cap ? buf->cap : BUF_FIRST_CAPACITY;
    char *data;

    if (more > buf->max || buf->len > buf->max - more)
        return -ENOBUFS;
    if (buf->data && buf->len + more < buf->cap)
        return 0;
    while (cap <= buf->len + more)
        cap *= 2;
    data = realloc(buf->data, cap);
    if (!data)
        return -ENOMEM;
    data[buf->len] = '\0';
    buf->data = data;
    buf->cap = cap;
    return 0;
}

int buf_add(struct buf *buf, const void *data, size_t len)
{
    int r = buf_reserve(buf, len);

    if (r < 0)
        return r;
    if (len > 0)
        memcpy(buf->data + buf->len, data, len);
    buf->len += len;
    buf->data[buf->len] = '\0';
    return 0;
}

int buf_add_str(struct buf *buf, const char *text)
{
    return buf_add(buf, text, strlen(text));
}

int buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args;
    int len, r;

    va_start(args, format);
    len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len < 0)
        return -EINVAL;
    r = buf_reserve(buf, (size_t)len);
    if (r < 0)
        return r;
    va_start(args, format);
    (void)vsnprintf(buf->data + buf->len, (size_t)len + 1, format, args);
    va_end(args);
    buf->len += (size_t)len;
    return 0;
}

void buf_consume(struct buf *buf, size_t len)
{
    if (len >= buf->len) {
        buf_clear(buf);
        return;
    }
    buf->len -= len;
    memmove(buf->data, buf->data + len, buf->len + 1);
}
