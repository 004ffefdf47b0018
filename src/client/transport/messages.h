/* A call that is answered with a stream of messages, each handed to a function. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "client/typed/result.h"

struct holt;
struct holt_error;

/* Returns 0 to continue, or -1 with error set, which ends the call. The message is freed when it
 * returns. */
typedef int (*message_fn)(void *context, struct reading *reading, const json_t *message,
                          struct holt_error *error);

struct messages_call {
    const char *method; /* "holt.v1.SnapshotService/Diff" */
    json_t *request;    /* taken; NULL: it could not be built */
    int64_t deadline;
    message_fn each;
    void *context;
    size_t size; /* of the result that each message is read into: reading->result */
};

/* 0 at the good end, or -1. */
int messages_follow(struct holt *holt, const struct messages_call *call, struct holt_error *error);
