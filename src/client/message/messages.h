/* Calls that return a stream of messages, each passed to a function. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct client_method;
struct holt;
struct holt_error;

/* Takes one decoded message, whose memory belongs to *result, of the size that the call asks for.
 * The result is freed afterwards unless the function keeps it and sets *result to NULL. Returns 0,
 * or -1 with error set, which ends the stream. */
typedef int (*message_fn)(void *context, void **result, const void *message,
                          struct holt_error *error);

struct messages_call {
    const struct client_method *method;
    const void *request; /* the message of the method */
    int64_t deadline;
    message_fn each;
    void *context;
    size_t size; /* of the result that each message is read into */
};

/* Returns 0 at the end of a successful stream, or -1. */
int messages_follow(struct holt *holt, const struct messages_call *call, struct holt_error *error);
