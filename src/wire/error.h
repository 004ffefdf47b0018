/* Errors as clients receive them, in the body of a unary reply and at the end of a stream:
 *
 *   {"code":"not_found","message":"no sandbox 'x'","cause":"SessionNotFound",
 *    "remedy":"see 'holt ls' ...","retryable":false,
 *    "details":[{"type":"holt.v1.ErrorInfo","value":"..."}]}
 *
 * Connect defines code, message and details; its clients ignore the rest and find the same in
 * details (proto/holt/v1/error.proto in protobuf encoding, as base64 without padding). Cause,
 * remedy and details are absent if they are empty. */
#pragma once

#include <jansson.h>

struct err;

/* Returns the object, which the caller releases; NULL if out of memory. Bytes that are not UTF-8
 * become "?". */
json_t *error_object(const struct err *err);
