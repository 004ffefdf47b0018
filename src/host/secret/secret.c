// SPDX-License-Identifier: Apache-2.0
#include "host/secret/secret.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/random.h"
#include "base/text/hex.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "host/image/login_registry.h"
#include "host/secret/authority.h"
#include "ssh/key.h"

#define KEY_FILE "secret.key"
/* Kinds, which are bound to the value as well. */
#define KIND_HTTP "http"
#define KIND_SSH "ssh"

enum { ID_BYTES = 10, CONTEXT_MAX = 16 * 1024 };

struct secrets {
    int state_fd; /* belongs to the host */
    struct registry *registry;
    struct lock lock; /* one change at a time; protects the key */
    struct seal_key key;
    bool has_key;
    bool expects_key;           /* see secrets_expect_key */
    struct authority authority; /* constant once there is one */
    struct lock source_lock;    /* protects the source, also while it is called */
    secret_source_fn *source;
    void *source_context;
};

DEFINE_CLEANUP(secrets_close, struct secrets *);

void secret_value_done(struct secret_value *value)
{
    explicit_bzero(value, sizeof(*value));
}

int secrets_open(int state_fd, struct registry *registry, struct secrets **ret, struct err *err)
{
    cleanup_with(secrets_close_slot) struct secrets *secrets = xcalloc(1, sizeof(*secrets));
    int r;

    secrets->state_fd = state_fd;
    secrets->registry = registry;
    lock_init(&secrets->lock, LOCK_SECRETS);
    lock_init(&secrets->source_lock, LOCK_SECRET_SOURCE);
    r = seal_key_read(state_fd, KEY_FILE, &secrets->key, err);
    if (r < 0 && r != -ENOENT)
        return r;
    secrets->has_key = r == 0;
    *ret = TAKE_PTR(secrets);
    return 0;
}

void secrets_close(struct secrets *secrets)
{
    if (!secrets)
        return;
    lock_destroy(&secrets->lock);
    lock_destroy(&secrets->source_lock);
    authority_done(&secrets->authority);
    explicit_bzero(secrets, sizeof(*secrets));
    free(secrets);
}

int secrets_authority(struct secrets *secrets, bool make, const struct authority **ret,
                      struct err *err)
{
    lock_scope(&secrets->lock);
    int r = 0;

    if (!secrets->authority.key)
        r = authority_open(secrets->state_fd, make, &secrets->authority, err);
    *ret = secrets->authority.key ? &secrets->authority : NULL;
    return r < 0 ? r : 0;
}

int secret_check_name(const char *name, struct err *err)
{
    if (!is_handle(name, SECRET_NAME_MAX))
        return err_set(err, ERR_INVALID,
                       "'%.80s' is not a name of a secret: use 1 to %d letters, digits, '.', '_' "
                       "or '-', a letter or digit first",
                       name, SECRET_NAME_MAX);
    if (strncasecmp(name, "holt", strlen("holt")) == 0)
        return err_set(err, ERR_INVALID, "'%s': names that begin with 'holt' are reserved", name);
    return 0;
}

static int ssh_key_check(const char *value, size_t len, struct err *err)
{
    struct ssh_key key;
    int r = ssh_key_read(&key, value, len, err);

    if (r == 0)
        ssh_key_done(&key);
    return r;
}

int secret_check_value(const struct secret_use *use, const char *value, size_t len, struct err *err)
{
    if (len == 0)
        return err_set(err, ERR_INVALID, "the value of the secret is empty");
    if (len > SECRET_VALUE_MAX)
        return err_set(err, ERR_INVALID, "the value of the secret is longer than %d bytes",
                       SECRET_VALUE_MAX);
    if (use->place == SECRET_IN_AGENT)
        return ssh_key_check(value, len, err);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)value[i] < ' ' || value[i] == 0x7f)
            return err_set(err, ERR_INVALID,
                           "the value of the secret has a control byte at offset %zu", i);
    if (value[0] == ' ' || value[len - 1] == ' ')
        return err_set(err, ERR_INVALID, "the value of the secret begins or ends with a blank");
    return 0;
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Everything that decides where the value goes; texts with their NUL, so that none runs into the
 * next. */
static int context_fill(const struct secret_row *row, struct buf *ret)
{
    const char *const parts[] = { "holt secret 1", row->id,   row->owner,
                                  row->name,       row->kind, row->use };
    int r = 0;

    for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(parts); i++)
        r = buf_add(ret, parts[i], strlen(parts[i]) + 1);
    return r;
}

static int value_seal(const struct secrets *secrets, const struct secret_change *change,
                      struct secret_row *row, struct err *err)
{
    cleanup_with(buf_done) struct buf context = BUF_INIT(CONTEXT_MAX);
    int r = context_fill(row, &context);

    if (r >= 0)
        r = seal_close(&secrets->key, &(struct seal_context){ context.data, context.len },
                       change->value, change->len, row->sealed);
    return r < 0 ? err_sys(err, r, "seal secret '%s'", row->name) : 0;
}

static int value_open(const struct secrets *secrets, const struct secret_row *row,
                      struct secret_value *ret, struct err *err)
{
    cleanup_with(buf_done) struct buf context = BUF_INIT(CONTEXT_MAX);
    int r = secrets->has_key ? context_fill(row, &context) : -ENOKEY;

    if (r >= 0)
        r = seal_open(&secrets->key, &(struct seal_context){ context.data, context.len },
                      row->sealed, ret->bytes, SECRET_VALUE_MAX);
    if (r < 0) {
        (void)err_set(err, ERR_INTERNAL, "secret '%s' of owner '%s' cannot be opened: %s",
                      row->name, row->owner,
                      secrets->has_key ? "it was changed, or sealed with another key"
                                       : KEY_FILE " is missing in the state directory");
        return err_remedy(err, "restore " KEY_FILE " from a backup, or set the secret again");
    }
    ret->bytes[r] = '\0';
    ret->len = (size_t)r;
    return 0;
}

static int info_from_row(const struct secret_row *row, struct secret_info *ret, struct err *err)
{
    cleanup_json json_t *use = NULL;
    int r = json_parse_object(row->use, strlen(row->use), &use, err);

    memcpy(ret->id, row->id, sizeof(ret->id));
    memcpy(ret->owner, row->owner, sizeof(ret->owner));
    memcpy(ret->name, row->name, sizeof(ret->name));
    ret->created_ms = row->created_ms;
    ret->changed_ms = row->changed_ms;
    if (r == 0)
        r = secret_use_from_json(use, &ret->use, err);
    return r < 0 ? err_wrap(err, "secret '%s' in the registry", row->name) : 0;
}

/* Returns a copy of the row with this id, or with this owner and name; NULL: none. */
static int row_find(struct secrets *secrets, const char *id, const char *owner, const char *name,
                    struct secret_row **ret, struct err *err)
{
    cleanup_free struct secret_row *rows = NULL;
    size_t count = 0;
    int r = registry_list_secrets(secrets->registry, &rows, &count, err);

    *ret = NULL;
    for (size_t i = 0; r == 0 && i < count; i++) {
        bool is_it = id ? strcmp(rows[i].id, id) == 0
                        : owner && name && strcmp(rows[i].owner, owner) == 0 &&
                              strcmp(rows[i].name, name) == 0;

        if (!is_it)
            continue;
        *ret = xcalloc(1, sizeof(**ret));
        **ret = rows[i];
        return 0;
    }
    return r;
}

static int secret_not_found(const char *word, struct err *err)
{
    (void)err_set(err, ERR_NOT_FOUND, "no secret '%.80s'", word);
    return err_remedy(err, "see 'holt secret ls', or set it with 'holt secret set'");
}

/* --- changes ---------------------------------------------------------------------------------- */

void secrets_expect_key(struct secrets *secrets)
{
    lock_scope(&secrets->lock);

    secrets->expects_key = true;
}

/* Makes the key with the first secret. Sealed values without a key mean that it was lost. */
static int key_ensure(struct secrets *secrets, size_t rows, struct err *err)
{
    size_t networks = 0, logins = 0;
    int r;

    if (secrets->has_key)
        return 0;
    r = registry_count_sealed_networks(secrets->registry, &networks, err);
    if (r == 0)
        r = registry_count_logins(secrets->registry, &logins, err);
    if (r < 0)
        return r;
    if (rows > 0 || networks > 0 || logins > 0 || secrets->expects_key) {
        (void)err_set(err, ERR_INTERNAL,
                      KEY_FILE " is missing in the state directory; it opens %zu secrets, %zu "
                               "logins to registries, the headers of %zu sandboxes%s",
                      rows, logins, networks,
                      secrets->expects_key ? ", and the secrets of E2B's clients" : "");
        return err_remedy(err, "restore it from a backup and restart, or remove all of these and "
                               "restart");
    }
    r = seal_key_make(secrets->state_fd, KEY_FILE, &secrets->key, err);
    fault_point("secret.key");
    secrets->has_key = r == 0;
    return r;
}

static int share_check(const struct secret_row *rows, size_t count, const char *owner,
                       struct err *err)
{
    const size_t share = owner_share(owner, SECRETS_MAX);
    size_t own = 0;

    for (size_t i = 0; i < count; i++)
        own += strcmp(rows[i].owner, owner) == 0;
    if (count >= SECRETS_MAX)
        return err_set(err, ERR_EXHAUSTED, "secret limit reached (%d)", SECRETS_MAX);
    if (own >= share)
        return err_set(err, ERR_EXHAUSTED, "secret limit of owner '%s' reached (%zu)", owner,
                       share);
    return 0;
}

static int row_init(struct secret_row *row, const struct secret_change *change, struct err *err)
{
    char digits[HEX_SIZE(ID_BYTES)];
    int r = random_hex(digits, ID_BYTES);

    if (r < 0)
        return err_sys(err, r, "get random bytes");
    (void)snprintf(row->id, sizeof(row->id), "sec%s", digits);
    (void)snprintf(row->owner, sizeof(row->owner), "%s", change->owner);
    (void)snprintf(row->name, sizeof(row->name), "%s", change->name);
    row->created_ms = clock_wall_ms();
    return 0;
}

/* Fills in the row to write: the one that exists, or a new one. */
static int row_prepare(struct secrets *secrets, const struct secret_change *change,
                       struct secret_row *ret, struct err *err)
{
    cleanup_free struct secret_row *rows = NULL;
    size_t count = 0, at = 0;
    int r = registry_list_secrets(secrets->registry, &rows, &count, err);

    if (r < 0)
        return r;
    while (at < count &&
           (strcmp(rows[at].owner, change->owner) != 0 || strcmp(rows[at].name, change->name) != 0))
        at++;
    if (at < count) {
        *ret = rows[at];
    } else if (!change->use) {
        return secret_not_found(change->name, err);
    } else {
        r = share_check(rows, count, change->owner, err);
        if (r == 0)
            r = row_init(ret, change, err);
    }
    return r == 0 ? key_ensure(secrets, count, err) : r;
}

static int use_write(const struct secret_use *use, struct secret_row *row, struct err *err)
{
    cleanup_json json_t *json = secret_use_to_json(use);
    cleanup_free char *text = json_dumps(json, JSON_COMPACT);

    if (!text || strlen(text) >= sizeof(row->use))
        return err_set(err, ERR_INVALID, "the hosts of secret '%s' are too long", row->name);
    (void)snprintf(row->use, sizeof(row->use), "%s", text);
    (void)snprintf(row->kind, sizeof(row->kind), "%s",
                   use->place == SECRET_IN_AGENT ? KIND_SSH : KIND_HTTP);
    return 0;
}

int secrets_put(struct secrets *secrets, const struct secret_change *change,
                struct secret_info *ret, struct err *err)
{
    cleanup_free struct secret_row *row = xcalloc(1, sizeof(*row));
    struct secret_info info;
    int r = secret_check_name(change->name, err);

    if (r < 0)
        return r;
    lock_scope(&secrets->lock);
    r = row_prepare(secrets, change, row, err);
    if (r == 0 && change->use)
        r = use_write(change->use, row, err);
    row->changed_ms = clock_wall_ms();
    if (r == 0)
        r = info_from_row(row, &info, err);
    if (r == 0)
        r = secret_check_value(&info.use, change->value, change->len, err);
    if (r < 0)
        return r;
    r = value_seal(secrets, change, row, err);
    fault_point("secret.sealed");
    if (r == 0)
        r = registry_put_secret(secrets->registry, row, err);
    fault_point("secret.recorded");
    if (r == 0)
        *ret = info;
    return r;
}

int secrets_seal_text(struct secrets *secrets, const char *context, const char *text, char **ret,
                      struct err *err)
{
    cleanup_free struct secret_row *rows = NULL;
    cleanup_free char *sealed = xcalloc(1, SEAL_TEXT_SIZE(strlen(text)));
    size_t count = 0;
    lock_scope(&secrets->lock);
    int r = registry_list_secrets(secrets->registry, &rows, &count, err);

    if (r == 0)
        r = key_ensure(secrets, count, err);
    if (r < 0)
        return r;
    r = seal_close(&secrets->key, &(struct seal_context){ context, strlen(context) }, text,
                   strlen(text), sealed);
    if (r < 0)
        return err_sys(err, r, "seal a secret");
    *ret = TAKE_PTR(sealed);
    return 0;
}

int secrets_open_text(struct secrets *secrets, const char *context, const char *sealed,
                      struct secret_value *ret, struct err *err)
{
    lock_scope(&secrets->lock);
    int r = secrets->has_key
                ? seal_open(&secrets->key, &(struct seal_context){ context, strlen(context) },
                            sealed, ret->bytes, SECRET_VALUE_MAX)
                : -ENOKEY;

    if (r == -ENOSPC)
        return err_set(err, ERR_INVALID, "a value of more than %d bytes cannot be in a header",
                       SECRET_VALUE_MAX);
    if (r < 0)
        return err_sys(err, r, "open a sealed text with " KEY_FILE);
    ret->bytes[r] = '\0';
    ret->len = (size_t)r;
    return 0;
}

void secrets_set_source(struct secrets *secrets, secret_source_fn *fn, void *context)
{
    lock_scope(&secrets->source_lock);

    secrets->source = fn;
    secrets->source_context = context;
}

int secrets_source_value(struct secrets *secrets, const char *owner, const char *id,
                         struct secret_value *ret, struct err *err)
{
    lock_scope(&secrets->source_lock);

    return secrets->source ? secrets->source(secrets->source_context, owner, id, ret, err)
                           : secret_not_found(id, err);
}

int secrets_remove(struct secrets *secrets, const char *id, struct err *err)
{
    lock_scope(&secrets->lock);
    int r = registry_remove_secret(secrets->registry, id, err);

    fault_point("secret.removed");
    return r;
}

/* --- questions -------------------------------------------------------------------------------- */

int secrets_find(struct secrets *secrets, const char *owner, const char *name,
                 struct secret_info *ret, struct err *err)
{
    cleanup_free struct secret_row *row = NULL;
    int r = row_find(secrets, NULL, owner, name, &row, err);

    if (r < 0)
        return r;
    return row ? info_from_row(row, ret, err) : secret_not_found(name, err);
}

int secrets_get(struct secrets *secrets, const char *id, struct secret_info *ret, struct err *err)
{
    cleanup_free struct secret_row *row = NULL;
    int r = row_find(secrets, id, NULL, NULL, &row, err);

    if (r < 0)
        return r;
    return row ? info_from_row(row, ret, err) : secret_not_found(id, err);
}

int secrets_get_value(struct secrets *secrets, const char *id, struct secret_value *ret,
                      struct err *err)
{
    cleanup_free struct secret_row *row = NULL;
    int r = row_find(secrets, id, NULL, NULL, &row, err);

    if (r < 0)
        return r;
    if (!row)
        return secret_not_found(id, err);
    lock_scope(&secrets->lock);
    return value_open(secrets, row, ret, err);
}

int secrets_list(struct secrets *secrets, const char *owner, struct secret_info **ret,
                 size_t *ret_count, struct err *err)
{
    cleanup_free struct secret_row *rows = NULL;
    cleanup_free struct secret_info *list = NULL;
    size_t count = 0, kept = 0;
    int r = registry_list_secrets(secrets->registry, &rows, &count, err);

    list = xcalloc(count + 1, sizeof(*list));
    for (size_t i = 0; r == 0 && i < count; i++)
        if (!owner || strcmp(rows[i].owner, owner) == 0)
            r = info_from_row(&rows[i], &list[kept++], err);
    if (r < 0)
        return r;
    *ret_count = kept;
    *ret = TAKE_PTR(list);
    return 0;
}
