// SPDX-License-Identifier: Apache-2.0
#include "http/connect.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "wire/error.h"

int connect_error_write(struct buf *out, const struct err *err)
{
    cleanup_json json_t *error = error_object(err);

    return error ? json_write(error, out) : -ENOMEM;
}

bool connect_type_is(const char *header, const char *type)
{
    size_t len = strlen(type);

    if (!header || strncasecmp(header, type, len) != 0)
        return false;
    return header[len] == '\0' || header[len] == ';' || header[len] == ' ' || header[len] == '\t';
}
