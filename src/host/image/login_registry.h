/* The logins to registries of images in the registry of the host. Only sealed passwords are in it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/access/caller.h"
#include "host/secret/seal.h"
#include "host/secret/secret_registry.h"

struct err;
struct registry;

enum {
    LOGIN_REGISTRY_MAX = 253,
    LOGIN_USERNAME_MAX = 255,
    LOGINS_MAX = 1000, /* of all owners */
};

struct login_row {
    char owner[OWNER_NAME_MAX + 1];
    char registry[LOGIN_REGISTRY_MAX + 1];
    char username[LOGIN_USERNAME_MAX + 1];
    char sealed[SEAL_TEXT_SIZE(SECRET_VALUE_MAX)];
    uint64_t changed_ms;
};

/* Records a login, or replaces the one that its owner has to this registry. It is on disk when this
 * returns, as for the next one. */
int registry_put_login(struct registry *registry, const struct login_row *row, struct err *err);

/* Removes a login; no error when there is none. */
int registry_remove_login(struct registry *registry, const char *owner, const char *name,
                          struct err *err);

/* Lists all logins by owner and registry. The caller frees the array. */
int registry_list_logins(struct registry *registry, struct login_row **ret, size_t *ret_count,
                         struct err *err);

int registry_count_logins(struct registry *registry, size_t *ret, struct err *err);
