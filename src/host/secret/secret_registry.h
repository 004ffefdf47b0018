/* The secrets in the registry. Only sealed values are in it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/access/caller.h"
#include "host/secret/seal.h"

struct err;
struct registry;

enum {
    SECRET_ID_SIZE = 28,
    SECRET_NAME_MAX = 64,
    SECRET_KIND_MAX = 15,
    SECRET_USE_MAX = 6143,
    SECRET_VALUE_MAX = 8192,
    SECRETS_MAX = 2000, /* of all owners */
};

struct secret_row {
    char id[SECRET_ID_SIZE]; /* stays when the secret is set again */
    char owner[OWNER_NAME_MAX + 1];
    char name[SECRET_NAME_MAX + 1];
    char kind[SECRET_KIND_MAX + 1];
    char use[SECRET_USE_MAX + 1]; /* JSON: where it may go, see secret.h */
    char sealed[SEAL_TEXT_SIZE(SECRET_VALUE_MAX)];
    uint64_t created_ms;
    uint64_t changed_ms;
};

/* Records a secret, or replaces the one with its id. Fails with ERR_EXISTS if another one of its
 * owner has its name. It is on disk when this returns, as for the next one. */
int registry_put_secret(struct registry *registry, const struct secret_row *row, struct err *err);

/* Removes a secret; no error when there is none. What is left of it on disk is sealed. */
int registry_remove_secret(struct registry *registry, const char *id, struct err *err);

/* Lists all secrets, oldest first. The caller frees the array. */
int registry_list_secrets(struct registry *registry, struct secret_row **ret, size_t *ret_count,
                          struct err *err);

/* Counts the sandboxes with a sealed value among the headers of their rules. */
int registry_count_sealed_networks(struct registry *registry, size_t *ret, struct err *err);
