/* What a sandbox asks of a provider of models: which of its calls it is, for which model, and how
 * many tokens it may take. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/json_scan.h"

struct buf;

enum provider_kind { PROVIDER_ANTHROPIC, PROVIDER_OPENAI };

enum request_call {
    CALL_UNKNOWN,
    CALL_PROBE,    /* HEAD /: some clients ask first whether there is anybody */
    CALL_MODELS,   /* the list of models, answered here */
    CALL_ENTRY,    /* one model of that list, by its name */
    CALL_COUNT,    /* counts tokens: needs a model and costs nothing */
    CALL_MESSAGES, /* these run a model */
    CALL_CHAT,
    CALL_RESPONSES,
};

enum { MODEL_NAME_MAX = 128, TOKEN_SIZE = 129 };

/* Why Holt answers a request itself. */
enum request_error {
    ERROR_MALFORMED,
    ERROR_KEY,
    ERROR_PATH,
    ERROR_MODEL,
    ERROR_LATE, /* the request was not whole in time */
    ERROR_SIZE,
    ERROR_RATE,  /* of a minute: to wait helps */
    ERROR_QUOTA, /* of a day */
    ERROR_PROVIDER,
    ERROR_SHORTAGE, /* of Holt itself */
};

/* Finds the call by method and path; a query is ignored. is_anthropic says whether the request has
 * a field anthropic-version, which decides for paths that both have. */
enum request_call request_classify(const char *method, const char *target, bool is_anthropic,
                                   enum provider_kind *ret_kind);

/* Writes the name that the path of CALL_ENTRY ends with. Returns 0, or -EINVAL for one that no
 * model can have. */
int request_entry_name(const char *target, char ret[MODEL_NAME_MAX + 1]);

/* Reads the body of a request as it comes. */
struct request_body {
    struct json_scan scan;
    enum request_call call;
    char model[MODEL_NAME_MAX + 1]; /* "": not named yet */
    uint64_t model_start, model_end;
    uint64_t max_output; /* 0: not said */
    uint64_t choices;
    bool is_stream;
    bool is_background; /* the reply comes at once, and its use of tokens never */
    bool is_refused;    /* a member is there twice, or is nothing that Holt can read */
};

void request_body_init(struct request_body *body, enum request_call call);

/* Takes the next bytes. Returns 0, or -EBADMSG from when on the request cannot be served. */
int request_body_feed(struct request_body *body, const char *bytes, size_t len);

/* Returns whether the body is complete and names a model. */
bool request_body_is_whole(const struct request_body *body);

/* Estimates the tokens of a body of this many bytes: a token of code or prose has three to four. */
uint64_t request_estimate_input(size_t body_bytes);

/* Appends the body with another name of the model; all other bytes stay. Returns 0 or -errno. */
int request_body_rename(const struct request_body *body, const char *bytes, size_t len,
                        const char *model, struct buf *out);

/* Appends a reply with an error in the shape of a provider. retry_seconds 0: no Retry-After. */
int request_put_error(enum provider_kind kind, enum request_error error, const char *message,
                      uint64_t retry_seconds, struct buf *out);
