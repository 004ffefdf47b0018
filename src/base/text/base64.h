/* Standard base64 with padding, for bytes in JSON. */
#pragma once

#include <stddef.h>

struct buf;

/* Appends the encoding of data. Returns 0, -ENOBUFS or -ENOMEM. */
int base64_encode(struct buf *out, const void *data, size_t len);

/* Appends the decoded bytes. Returns 0, -EINVAL if the text is not canonical, -ENOBUFS or -ENOMEM.
 */
int base64_decode(struct buf *out, const char *text, size_t len);
