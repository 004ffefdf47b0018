/* What the files of this room share beside the handle. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/typed/result.h"

struct holt;
struct holt_error;

/* Copies a caller's options, which begin with their size, over defaults that begin with ours: those
 * of an older program are shorter. NULL leaves the defaults. 0 or -1. */
int options_take(void *into, size_t size, const void *given, struct holt_error *error);

/* A call of the typed layer. */
struct client_call {
    const char *method;   /* "HostService/Health", of holt.v1 */
    json_t *request;      /* taken; NULL: a text is not UTF-8, or there is no memory */
    bool can_be_repeated; /* it changes nothing, or carries a key */
    int64_t deadline;
};

/* Calls the daemon: 0 with the reply, an object that the caller frees, or -1. Retries a repeatable
 * call while the daemon is unavailable. */
int client_call(struct holt *holt, const struct client_call *call, json_t **ret_reply,
                struct holt_error *error);

/* Does the same for a reply with one object in a field. ret points to the caller's result pointer;
 * NULL: the result is not needed. */
struct client_answer {
    const char *field; /* NULL: the reply itself */
    size_t size;       /* of the result */
    read_fn read;
};
int client_call_for(struct holt *holt, const struct client_call *call,
                    const struct client_answer *answer, void *ret, struct holt_error *error);

/* The same for one that says nothing. */
int client_call_void(struct holt *holt, const struct client_call *call, struct holt_error *error);
