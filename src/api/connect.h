/* The words of the Connect protocol: codes, HTTP statuses, content types, error bodies. */
#pragma once

#include <jansson.h>
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

/* Appends {"code":...,"message":...}: 0, -ENOBUFS or -ENOMEM. */
int connect_error_write(struct buf *out, const char *code, const char *message);

/* Whether a Content-Type header (NULL: absent) says this type, whatever its parameters. */
bool connect_type_is(const char *header, const char *type);

/* Text as a JSON string. Messages are cut to size without regard for UTF-8 and may quote foreign
 * bytes: where that is not valid, everything outside ASCII becomes "?". */
json_t *connect_text(const char *text);
