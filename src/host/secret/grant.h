/* What a sandbox has of secrets: for each a placeholder, in a variable. Grants are made with the
 * sandbox, are recorded with it as JSON,
 * {"grants":[{"secret":ID,"name":NAME,"env":VARIABLE,"placeholder":TEXT}]}, and end with it. A key
 * of SSH has no variable (""), and its placeholder stands nowhere. A fork has the same secrets with
 * placeholders of its own. They are worth nothing outside of Holt. A sandbox that has none but
 * trusts the authority of the host, for rules on requests inside TLS, has an empty list. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "host/secret/secret_registry.h"
#include "host/secret/use.h"

struct caller;
struct err;
struct host;

enum { SECRET_GRANTS_MAX = 16, SECRET_PLACEHOLDER_SIZE = 64 };

struct secret_grant {
    char secret[SECRET_ID_SIZE];
    char name[SECRET_NAME_MAX + 1];
    char env[SECRET_ENV_MAX + 1];
    char placeholder[SECRET_PLACEHOLDER_SIZE];
};

struct secret_grants {
    struct secret_grant items[SECRET_GRANTS_MAX];
    size_t count;
};

/* Reads what is recorded; NULL: nothing. A text that Holt has not written has no grants. */
void secret_grants_read(const char *recorded, struct secret_grants *ret);

/* Computes what to record for a new sandbox of the caller that has these secrets: NULL for none.
 * Fails with ERR_NOT_FOUND for a secret that the owner does not have, ERR_INVALID for two in one
 * variable. */
int secret_grants_make(struct host *host, const struct caller *caller, const char *const *names,
                       size_t count, char **ret, struct err *err);

/* Returns what to record for a sandbox that only trusts the authority. */
char *secret_grants_empty(void);

/* Does the same for a fork, with new placeholders. */
int secret_grants_renew(const char *recorded, char **ret, struct err *err);

/* Returns the variables of all processes, "NAME=value", ending with NULL, and what makes programs
 * trust the host's authority; NULL: none. The caller frees them with secret_env_free. */
char **secret_env_make(const char *recorded);
void secret_env_free(char **env);

/* Returns the secrets as holt-net gets them, with values (see egress/control.h). One that was
 * removed or cannot be opened is left out: its placeholder is worth nothing. */
json_t *secret_grants_for_net(struct host *host, const char *owner, const char *recorded);

/* Returns the keys of SSH among them as the agent in holt-net gets them; NULL: the sandbox was not
 * given any. */
json_t *secret_grants_keys(struct host *host, const char *recorded);

/* Gives running sandboxes the present values of their secrets. */
void secret_grants_apply(struct host *host);
