/* Filling the public struct holt_error. */
#pragma once

#include <stddef.h>

struct holt_error;

/* code is a Connect code. */
void error_fill(struct holt_error *error, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Does the same and returns -1, which lets static analysis see it. */
#define error_set(...) (error_fill(__VA_ARGS__), -1)

/* Reads an error reply of the daemon (wire/error.h); describes the HTTP status if the body is
 * something else. */
void error_from_reply(struct holt_error *error, unsigned status, const char *body, size_t len);

/* Reads the payload of a stream's end. Returns 0 for a successful end, else -1. */
int error_from_end(struct holt_error *error, const char *payload, size_t len);
