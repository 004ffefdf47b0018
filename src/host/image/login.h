/* Logins to registries of images. They belong to an owner, and their passwords are sealed with the
 * key of the secrets (host/secret/secret.h), bound to owner, registry and user name. */
#pragma once

#include <stddef.h>

#include "host/image/login_registry.h"
#include "host/secret/secret.h"

struct caller;
struct err;
struct host;

struct image_login {
    char owner[OWNER_NAME_MAX + 1];
    char registry[LOGIN_REGISTRY_MAX + 1];
    char username[LOGIN_USERNAME_MAX + 1];
    uint64_t changed_ms;
};

struct image_login_request {
    const char *registry; /* as in a reference */
    const char *username, *password;
};

/* Checks a login at its registry and keeps it for the caller's owner, instead of an earlier one. On
 * disk when this returns. */
int image_login_set(struct host *host, const struct caller *caller,
                    const struct image_login_request *request, struct image_login *ret,
                    struct err *err);

/* Removes a login that the caller sees: REGISTRY or OWNER/REGISTRY. Fails with ERR_NOT_FOUND. */
int image_login_remove(struct host *host, const struct caller *caller, const char *word,
                       struct err *err);

/* Lists the logins that the caller sees. The caller frees the array. */
int image_login_list(struct host *host, const struct caller *caller, struct image_login **ret,
                     size_t *ret_count, struct err *err);

/* What one pull or push presents to its registry; wiped by image_credentials_done. */
struct image_credentials {
    char user[1024 + 1]; /* "": none */
    struct secret_value password;
};
void image_credentials_done(struct image_credentials *credentials);

/* Takes the credentials that were given for a registry (username "": none), or else those of the
 * login of the caller's owner to it. A caller that is limited to labels has no logins. */
int image_credentials_find(struct host *host, const struct caller *caller,
                           const struct image_login_request *given, struct image_credentials *ret,
                           struct err *err);
