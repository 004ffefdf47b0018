/* The logins to registries of images of libholt; holt.h includes this file. A login is sealed on
 * the host and used by the pulls and pushes of its owner. No function returns the password. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "holt.h"

#ifdef __cplusplus
extern "C" {
#endif

struct holt_registry_login {
    const char *registry; /* "HOST" or "HOST:PORT" */
    const char *owner;    /* has at most one login to a registry */
    const char *username;
    int64_t changed_ms; /* since 1970 */
};

struct holt_registry_login_list {
    size_t count;
    const struct holt_registry_login *const *items;
};

struct holt_registry_options {
    size_t size;
    const char *registry; /* as in a reference; "docker.io" is Docker Hub */
    const char *username;
    const char *password; /* or a token; 1 to 8192 bytes */
};

/* Checks a login at its registry and keeps it instead of an earlier one. ret may be NULL. */
HOLT_API int holt_registry_login(struct holt *holt, const struct holt_registry_options *options,
                                 int64_t deadline, struct holt_registry_login **ret,
                                 struct holt_error *error);

/* Forgets a login, by REGISTRY or OWNER/REGISTRY. */
HOLT_API int holt_registry_logout(struct holt *holt, const char *registry, int64_t deadline,
                                  struct holt_error *error);
HOLT_API int holt_registry_list(struct holt *holt, int64_t deadline,
                                struct holt_registry_login_list **ret, struct holt_error *error);

#ifdef __cplusplus
}
#endif
