// SPDX-License-Identifier: Apache-2.0
#include "api/connect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"

/* https://connectrpc.com/docs/protocol/#error-codes */
static const struct connect_code codes[ERR_KINDS] = {
    [ERR_NONE] = { "unknown", 500 },
    [ERR_INVALID] = { "invalid_argument", 400 },
    [ERR_NOT_FOUND] = { "not_found", 404 },
    [ERR_EXISTS] = { "already_exists", 409 },
    [ERR_DENIED] = { "permission_denied", 403 },
    [ERR_EXHAUSTED] = { "resource_exhausted", 429 },
    [ERR_BUSY] = { "failed_precondition", 400 },
    [ERR_UNSUPPORTED] = { "unimplemented", 501 },
    [ERR_INTERNAL] = { "internal", 500 },
};

const struct connect_code *connect_code_of(enum err_kind kind)
{
    return &codes[kind < ERR_KINDS ? kind : ERR_NONE];
}

int connect_error_write(struct buf *out, const char *code, const char *message, const char *cause)
{
    cleanup_json json_t *error =
        json_pack("{s:s, s:o, s:s*}", "code", code, "message", json_text(message), "cause", cause);

    return error ? json_write(error, out) : -ENOMEM;
}

bool connect_type_is(const char *header, const char *type)
{
    size_t len = strlen(type);

    if (!header || strncasecmp(header, type, len) != 0)
        return false;
    return header[len] == '\0' || header[len] == ';' || header[len] == ' ' || header[len] == '\t';
}
