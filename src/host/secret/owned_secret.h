/* Secrets as front ends know them: on behalf of a caller, with events, and with effect on the
 * sandboxes that have them. */
#pragma once

#include <stddef.h>

#include "host/secret/secret.h"

struct caller;
struct err;
struct host;

/* Makes or replaces a secret of the caller's owner. */
struct owned_secret_value {
    const char *name;
    const char *value;
    size_t len;
};
int owned_secret_set(struct host *host, const struct caller *caller,
                     const struct owned_secret_value *value, const struct secret_request *request,
                     struct secret_info *ret, struct err *err);

/* Replaces the value of a secret that the caller sees: NAME, OWNER/NAME or an id. Sandboxes that
 * have it use the new value from then on. */
int owned_secret_rotate(struct host *host, const struct caller *caller,
                        const struct owned_secret_value *value, struct secret_info *ret,
                        struct err *err);

/* Finds a secret that the caller sees: NAME, OWNER/NAME or an id. Fails with ERR_NOT_FOUND, with
 * the same text for those that do not exist and those of others. */
int owned_secret_find(struct host *host, const struct caller *caller, const char *word,
                      struct secret_info *ret, struct err *err);

/* Lists the secrets that the caller sees, oldest first. The caller frees the array. */
int owned_secret_list(struct host *host, const struct caller *caller, struct secret_info **ret,
                      size_t *ret_count, struct err *err);

/* Removes a secret. Placeholders of sandboxes that had it are worth nothing from then on. */
int owned_secret_remove(struct host *host, const struct caller *caller, const char *word,
                        struct err *err);
