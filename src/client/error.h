/* Filling the public struct holt_error. */
#pragma once

#include <stddef.h>

struct holt_error;

/* code is a Connect code. */
void error_fill(struct holt_error *error, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, and is -1, so that a caller can return it, and whoever checks the caller knows it. */
#define error_set(...) (error_fill(__VA_ARGS__), -1)

/* Takes an error from the daemon (wire/error.h), or, where the body is something else, says what
 * the HTTP status stands for. */
void error_from_reply(struct holt_error *error, unsigned status, const char *body, size_t len);

/* Takes the payload of a stream's end: 0 for a good end, else -1. */
int error_from_end(struct holt_error *error, const char *payload, size_t len);
