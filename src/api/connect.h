/* The words of the Connect protocol: codes, HTTP statuses, content types, error bodies. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

struct buf;

#define CONNECT_UNARY_TYPE "application/json"
#define CONNECT_STREAM_TYPE "application/connect+json"

struct connect_code {
    const char *name;
    unsigned http_status;
};

/* How an error of this kind is told to a client. */
const struct connect_code *connect_code_of(enum err_kind kind);

/* Appends {"code":...,"message":...,"cause":...}, the last unless it is NULL: 0, -ENOBUFS or
 * -ENOMEM. */
int connect_error_write(struct buf *out, const char *code, const char *message, const char *cause);

/* Whether a Content-Type header (NULL: absent) says this type, whatever its parameters. */
bool connect_type_is(const char *header, const char *type);
