/* What clients of E2B ask for when they create a sandbox, as Holt's own. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct err;

struct e2b_create {
    const char *template_id; /* in the request */
    uint64_t timeout_s;
    json_t *metadata; /* the sandbox's metadata, before the template's own values are merged */
};

/* is_v1: the first version of the call, in which clients must ask for what the second always
 * includes. */
int e2b_create_parse(const json_t *body, bool is_v1, struct e2b_create *ret, struct err *err);
void e2b_create_done(struct e2b_create *create);

/* A field in seconds, which must not be more than E2B_TIMEOUT_MAX_S; absent: as it was. */
int e2b_timeout_parse(const json_t *body, const char *field, uint64_t *ret, struct err *err);

/* New tokens: for envd, and for ports unless the metadata says that they are public. */
int e2b_metadata_add_tokens(json_t *metadata, struct err *err);

/* A new token for ports, which are then not public. */
int e2b_metadata_add_traffic_token(json_t *metadata, struct err *err);
