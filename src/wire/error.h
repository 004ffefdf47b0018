/* Errors as clients read them, in the body of a unary reply and at the end of a stream:
 *
 *   {"code":"not_found","message":"no sandbox 'x'","cause":"SessionNotFound",
 *    "remedy":"see 'holt ls' ...","retryable":false,
 *    "details":[{"type":"holt.v1.ErrorInfo","value":"..."}]}
 *
 * Connect knows code, message and details; its clients ignore the rest and find the same in details
 * (proto/holt/v1/error.proto, as protobuf writes it, in base64 without padding). Cause and remedy
 * are absent where there are none, and so are details that would say nothing. */
#pragma once

#include <jansson.h>

struct err;

/* The object for the caller to drop; NULL without memory. Bytes of texts that are not UTF-8 come
 * out as "?". */
json_t *error_object(const struct err *err);
