/* Secrets: values that never enter a sandbox. They are sealed in the registry (seal.h), belong to
 * an owner, and name the hosts that they may be sent to (use.h). A sandbox has a placeholder
 * instead (grant.h), which holt-net replaces on the way to these hosts.
 *
 * The value is bound to the id, the owner, the name and the use of its secret: a row that was
 * changed outside of Holt cannot be opened. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/secret/secret_registry.h"
#include "host/secret/use.h"

struct err;
struct host;
struct registry;
struct secrets;

struct secret_info {
    char id[SECRET_ID_SIZE];
    char owner[OWNER_NAME_MAX + 1];
    char name[SECRET_NAME_MAX + 1];
    struct secret_use use;
    uint64_t created_ms;
    uint64_t changed_ms;
};

/* A value, which is wiped by secret_value_done. */
struct secret_value {
    size_t len;
    char bytes[SECRET_VALUE_MAX + 1]; /* ends with a NUL, and has no other */
};
void secret_value_done(struct secret_value *value);

/* Opens the store: reads the key in the state directory. Where it is missing, a new one is made
 * with the first secret; with secrets in the registry their use fails until it is restored. */
int secrets_open(int state_fd, struct registry *registry, struct secrets **ret, struct err *err);

/* Returns the certificate authority of this host, valid until secrets_close. Without one: makes it,
 * or returns NULL in *ret. */
struct authority;
int secrets_authority(struct secrets *secrets, bool make, const struct authority **ret,
                      struct err *err);

/* Wipes the key. Accepts NULL. */
void secrets_close(struct secrets *secrets);

/* Fails with ERR_INVALID unless this is a name of a secret: 1 to SECRET_NAME_MAX letters, digits,
 * '.', '_' and '-', a letter or digit first, not beginning with "holt". */
int secret_check_name(const char *name, struct err *err);

/* Fails with ERR_INVALID for a value that is empty, too long, or no key of SSH if it is to be used
 * as one; other values must not have bytes that a header cannot hold: NUL, control bytes, and
 * blanks at either end. */
int secret_check_value(const struct secret_use *use, const char *value, size_t len,
                       struct err *err);

struct secret_change {
    const char *owner;
    const char *name;
    const struct secret_use *use; /* NULL: stays; the secret must exist */
    const char *value;
    size_t len;
};

/* Makes a secret, or replaces its value and use; its id stays. On disk when this returns. Fails
 * with ERR_EXHAUSTED above the share of the owner, ERR_NOT_FOUND without a use if there is none. */
int secrets_put(struct secrets *secrets, const struct secret_change *change,
                struct secret_info *ret, struct err *err);

/* Finds a secret of an owner by name. Fails with ERR_NOT_FOUND. */
int secrets_find(struct secrets *secrets, const char *owner, const char *name,
                 struct secret_info *ret, struct err *err);

/* Finds a secret by its id. Fails with ERR_NOT_FOUND. */
int secrets_get(struct secrets *secrets, const char *id, struct secret_info *ret, struct err *err);

/* Opens the value of a secret, by its id, for the daemon itself. Fails with ERR_NOT_FOUND, and with
 * ERR_INTERNAL if it cannot be opened with the key of this host. */
int secrets_get_value(struct secrets *secrets, const char *id, struct secret_value *ret,
                      struct err *err);

/* Lists the secrets of an owner (NULL: of all), oldest first. The caller frees the array. */
int secrets_list(struct secrets *secrets, const char *owner, struct secret_info **ret,
                 size_t *ret_count, struct err *err);

/* Seals a text that is kept elsewhere, and opens it; `context` says what it belongs to. The caller
 * frees the result. Opening fails with ERR_INTERNAL for another context, and with ERR_INVALID for a
 * text that is longer than a value. */
int secrets_seal_text(struct secrets *secrets, const char *context, const char *text, char **ret,
                      struct err *err);
int secrets_open_text(struct secrets *secrets, const char *context, const char *sealed,
                      struct secret_value *ret, struct err *err);

/* Says that a front end has texts that were sealed before this start: a key that is missing was
 * lost, and none is made. To be called before requests are served. */
void secrets_expect_key(struct secrets *secrets);

/* Sets where the values of secrets come from that a front end keeps itself (NULL: nowhere). When
 * this returns, the function before is no longer called. It fails with ERR_NOT_FOUND for secrets
 * that the owner does not have. */
typedef int secret_source_fn(void *context, const char *owner, const char *id,
                             struct secret_value *ret, struct err *err);
void secrets_set_source(struct secrets *secrets, secret_source_fn *fn, void *context);

/* Returns the value of such a secret. */
int secrets_source_value(struct secrets *secrets, const char *owner, const char *id,
                         struct secret_value *ret, struct err *err);

/* Removes a secret by its id; no error when there is none. */
int secrets_remove(struct secrets *secrets, const char *id, struct err *err);
