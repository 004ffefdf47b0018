/* Calls of the typed functions. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/message/methods.h"
#include "client/message/result.h"

struct holt;
struct holt_error;

/* Copies the options of a caller, which start with their size, over defaults: those of an older
 * program are shorter. NULL keeps the defaults. Returns 0 or -1. */
int options_take(void *into, size_t size, const void *given, struct holt_error *error);

struct client_call {
    const struct client_method *method;
    const void *request;  /* the message of the method */
    bool can_be_repeated; /* it changes nothing, or has an idempotency key */
    int64_t deadline;
};

/* Makes a call, and repeats it while the daemon is unavailable if it can be repeated. Returns 0
 * with the reply, which the caller releases, or -1. */
int client_call(struct holt *holt, const struct client_call *call, json_t **ret_reply,
                struct holt_error *error);

/* Fills a result in from the decoded reply. Returns 0 or -1. */
typedef int (*fill_fn)(void *result, const void *reply, struct holt_error *error);

/* Makes a call and stores a result of this size in *ret, a pointer to it; ret may be NULL. */
int client_call_for(struct holt *holt, const struct client_call *call, size_t size, fill_fn fill,
                    void *ret, struct holt_error *error);

/* Makes a call whose reply is empty. */
int client_call_void(struct holt *holt, const struct client_call *call, struct holt_error *error);

/* Sets the error of a reply without a field that it must have. Returns -1. */
#define reply_lacks(field, error)                                                                  \
    error_set((error), "internal", "the reply of the daemon has no '%s'", (field))
