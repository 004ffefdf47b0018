/* The secrets of libholt; holt.h includes this file. A secret is a value that is sealed on the host
 * and bound to the hosts that it may be sent to. No function returns the value. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holt.h"

#ifdef __cplusplus
extern "C" {
#endif

struct holt_secret {
    const char *id;
    const char *name;
    const char *owner; /* names are unique for each owner */
    size_t host_count;
    const char *const *hosts;  /* "HOST:PORT" */
    const char *place;         /* "header", "query", "json", "basic" or "ssh" */
    const char *field;         /* of the header, parameter or JSON pointer; "" for basic */
    const char *template_text; /* of a header; "{}" stands for the value */
    const char *env;           /* the variable that holds the placeholder in a sandbox */
    int64_t created_ms;        /* since 1970 */
    int64_t changed_ms;
    size_t host_key_count;
    const char *const *host_keys; /* of the servers that a key of SSH is for */
};

struct holt_secret_list {
    size_t count;
    const struct holt_secret *const *items;
};

struct holt_secret_options {
    size_t size;
    const char *value;        /* 1 to 8192 bytes without control bytes */
    const char *const *hosts; /* "HOST[:PORT]", with a NULL at the end */
    const char *header;       /* "NAME: TEMPLATE"; NULL: "Authorization: Bearer {}" */
    const char *query;        /* or a query parameter */
    const char *json;         /* or a JSON pointer into the body */
    bool is_basic;            /* or the password of basic authentication */
    const char *env;          /* NULL: the name in capitals */
    /* Or the public keys of servers, with a NULL at the end: the value is then a private key of
     * SSH, which signs logins to these servers; it has no hosts. */
    const char *const *host_keys;
};

/* Makes a secret, or replaces the one of this name. ret may be NULL. */
HOLT_API int holt_secret_set(struct holt *holt, const char *name,
                             const struct holt_secret_options *options, int64_t deadline,
                             struct holt_secret **ret, struct holt_error *error);

/* Replaces the value of a secret, by name, id or OWNER/NAME. ret may be NULL. */
HOLT_API int holt_secret_rotate(struct holt *holt, const char *secret, const char *value,
                                int64_t deadline, struct holt_secret **ret,
                                struct holt_error *error);
HOLT_API int holt_secret_list(struct holt *holt, int64_t deadline, struct holt_secret_list **ret,
                              struct holt_error *error);
HOLT_API int holt_secret_remove(struct holt *holt, const char *secret, int64_t deadline,
                                struct holt_error *error);

#ifdef __cplusplus
}
#endif
