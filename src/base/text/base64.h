/* Standard base64 with padding, as JSON carries bytes. */
#pragma once

#include <stddef.h>

struct buf;

/* Appends the encoding of data: 0, -ENOBUFS or -ENOMEM. */
int base64_encode(struct buf *out, const void *data, size_t len);

/* Appends the bytes that text stands for: 0, -EINVAL on anything not canonical, -ENOBUFS, -ENOMEM.
 */
int base64_decode(struct buf *out, const char *text, size_t len);
