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
    json_t *request;      /* taken; NULL stands for a text that is not UTF-8, or no memory */
    bool can_be_repeated; /* it changes nothing, or carries a key */
    int64_t deadline;
};

/* 0 with the reply, an object for the caller to drop, or -1. Who may is tried again when the daemon
 * is unavailable. */
int client_call(struct holt *holt, const struct client_call *call, json_t **ret_reply,
                struct holt_error *error);

/* The same, for an answer that is one object in a field of the reply. ret is where the caller wants
 * the pointer to the result; NULL: nobody wants it. */
struct client_answer {
    const char *field; /* NULL: the reply itself */
    size_t size;       /* of the result */
    read_fn read;
};
int client_call_for(struct holt *holt, const struct client_call *call,
                    const struct client_answer *answer, void *ret, struct holt_error *error);

/* The same for one that says nothing. */
int client_call_void(struct holt *holt, const struct client_call *call, struct holt_error *error);
