/* Content types and error bodies of the Connect protocol. */
#pragma once

#include <stdbool.h>

struct buf;
struct err;

#define CONNECT_UNARY_TYPE "application/json"
#define CONNECT_STREAM_TYPE "application/connect+json"

/* Appends the body of a failed unary call (wire/error.h): 0, -ENOBUFS or -ENOMEM. */
int connect_error_write(struct buf *out, const struct err *err);

/* Whether a Content-Type header (NULL: absent) is of this type, with any parameters. */
bool connect_type_is(const char *header, const char *type);
