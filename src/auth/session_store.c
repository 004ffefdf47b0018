// SPDX-License-Identifier: Apache-2.0
#include "auth/session_store.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/session_row.h"
#include "auth/token_store.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/lock.h"
#include "base/random.h"
#include "base/text/hex.h"
#include "base/xalloc.h"

enum { SECRET_BYTES = 32, BUCKETS = 256 };

_Static_assert((int)SESSION_HASH_BYTES == (int)SHA256_DIGEST_LENGTH, "secrets are kept as SHA-256");

/* A session in memory. Its id is made of the first digits of the cookie's hash, so that both lead
 * to the same bucket. */
struct session {
    struct session_data data;
    struct session *next; /* of the same bucket */
};

struct login_code {
    bool is_used;
    unsigned char hash[SESSION_HASH_BYTES];
    struct login login;
    uint64_t until_ms; /* clock_ms */
};

struct session_store {
    struct token_store *tokens;
    struct session_storage storage;
    struct session_rules rules;

    struct lock lock; /* protects everything below */
    struct session *buckets[BUCKETS];
    size_t count;
    struct login_code codes[LOGIN_CODES_MAX];
};

static void secret_hash(const char *text, unsigned char ret[SESSION_HASH_BYTES])
{
    (void)SHA256((const unsigned char *)text, strlen(text), ret);
}

static bool hash_is_equal(const unsigned char *a, const unsigned char *b)
{
    return CRYPTO_memcmp(a, b, SESSION_HASH_BYTES) == 0;
}

/* --- the table; these need the lock ----------------------------------------------------------- */

static struct session **bucket_of(struct session_store *store, unsigned char first)
{
    return &store->buckets[first];
}

static struct session *session_by_cookie(struct session_store *store, const unsigned char *hash)
{
    struct session *session = *bucket_of(store, hash[0]);

    while (session && !hash_is_equal(session->data.cookie_hash, hash))
        session = session->next;
    return session;
}

/* Returns the place of the pointer to the session, for its removal; NULL: there is none. */
static struct session **session_slot(struct session_store *store, const char *id)
{
    unsigned char first;
    char digits[3] = "";
    struct session **slot;

    if (id[0] != 's' || strlen(id) != SESSION_ID_LEN)
        return NULL;
    memcpy(digits, id + 1, 2);
    if (!hex_decode(digits, &first, 1))
        return NULL;
    slot = bucket_of(store, first);
    while (*slot && strcmp((*slot)->data.info.id, id) != 0)
        slot = &(*slot)->next;
    return *slot ? slot : NULL;
}

static void session_insert(struct session_store *store, const struct session_data *data)
{
    struct session **bucket = bucket_of(store, data->cookie_hash[0]);
    struct session *session = xcalloc(1, sizeof(*session));

    session->data = *data;
    session->next = *bucket;
    *bucket = session;
    store->count++;
}

/* Returns false if somebody else has dropped the session. */
static bool session_drop(struct session_store *store, const char *id, struct session_info *ret)
{
    struct session **slot = session_slot(store, id), *session;

    if (!slot)
        return false;
    session = *slot;
    *ret = session->data.info;
    *slot = session->next;
    store->count--;
    free(session);
    return true;
}

/* --- validity --------------------------------------------------------------------------------- */

static bool is_preview(const struct login *login)
{
    return login->preview.sandbox[0] != '\0';
}

static bool target_is_equal(const struct preview_target *one, const struct preview_target *other)
{
    return strcmp(one->sandbox, other->sandbox) == 0 && one->port == other->port;
}

bool session_store_has_logins(const struct session_store *store)
{
    return store->rules.has_logins;
}

/* Another main token, made after the first was deleted, ends the sessions of the first. */
static bool login_is_valid(const struct session_store *store, const struct login *login,
                           const char *main_mark)
{
    char mark[SESSION_MARK_HEX + 1];

    if (!token_store_is_valid(store->tokens, login->caller.token))
        return false;
    if (!login->is_main)
        return true;
    token_store_main_mark(store->tokens, mark);
    return strcmp(mark, main_mark) == 0;
}

static bool data_is_current(const struct session_store *store, const struct session_data *data)
{
    return clock_wall_ms() < data->info.expires_ms &&
           login_is_valid(store, &data->info.login, data->main_mark);
}

/* Copies a session, valid or not. Returns false if there is none. */
static bool data_find(struct session_store *store, const char *id, struct session_data *ret)
{
    struct session **slot;

    lock_scope(&store->lock);
    slot = session_slot(store, id);
    if (slot)
        *ret = (*slot)->data;
    return slot != NULL;
}

/* A preview ends with the login that made it, which is no preview itself. */
static bool data_is_valid(struct session_store *store, const struct session_data *data)
{
    struct session_data parent;

    return data_is_current(store, data) &&
           (data->parent[0] == '\0' ||
            (data_find(store, data->parent, &parent) && data_is_current(store, &parent)));
}

bool session_store_get(struct session_store *store, const char *id, struct session_info *ret)
{
    struct session_data data;

    if (!data_find(store, id, &data) || !data_is_valid(store, &data))
        return false;
    *ret = data.info;
    return true;
}

bool session_store_is_valid(struct session_store *store, const char *id)
{
    struct session_info ignored;

    return session_store_get(store, id, &ignored);
}

/* --- finding the caller ----------------------------------------------------------------------- */

/* `key` is NULL if the cookie alone is to be found, `target` if it is that of a login. */
static void session_match(struct session_store *store, const char *cookie, const char *key,
                          const struct preview_target *target, struct caller *ret)
{
    static const struct preview_target none = { .port = 0 };
    unsigned char cookie_hash[SESSION_HASH_BYTES], key_hash[SESSION_HASH_BYTES];
    struct session_data data;
    struct session *session;

    *ret = (struct caller){ .role = ROLE_NONE };
    secret_hash(cookie, cookie_hash);
    secret_hash(key ? key : "", key_hash);
    lock_take(&store->lock);
    session = session_by_cookie(store, cookie_hash);
    if (session && key && !hash_is_equal(session->data.key_hash, key_hash))
        session = NULL;
    if (session && !target_is_equal(&session->data.info.login.preview, target ? target : &none))
        session = NULL;
    if (session) {
        session->data.info.used_ms = clock_wall_ms();
        data = session->data;
    }
    lock_release(&store->lock);
    if (!session || !data_is_valid(store, &data))
        return;
    *ret = data.info.login.caller;
    (void)snprintf(ret->session, sizeof(ret->session), "%s", data.info.id);
}

void session_store_match(struct session_store *store, const char *cookie, const char *key,
                         struct caller *ret)
{
    session_match(store, cookie, key, NULL, ret);
}

void session_store_match_preview(struct session_store *store, const char *cookie,
                                 const struct preview_target *target, struct caller *ret)
{
    session_match(store, cookie, NULL, target, ret);
}

void session_store_match_cookie(struct session_store *store, const char *cookie, struct caller *ret)
{
    session_match(store, cookie, NULL, NULL, ret);
}

/* --- opening and closing ---------------------------------------------------------------------- */

struct session_store *session_store_new(struct token_store *tokens,
                                        const struct session_storage *storage,
                                        const struct session_rules *rules)
{
    struct session_store *store = xcalloc(1, sizeof(*store));

    store->tokens = tokens;
    store->storage = *storage;
    store->rules = *rules;
    lock_init(&store->lock, LOCK_SESSIONS);
    return store;
}

bool session_store_load(struct session_store *store, const struct session_row *row)
{
    struct session_data data;

    if (!session_data_read(row, &data) || clock_wall_ms() >= data.info.expires_ms ||
        !token_store_is_valid(store->tokens, data.info.login.caller.token) ||
        (!is_preview(&data.info.login) && !store->rules.has_logins))
        return false;
    lock_scope(&store->lock);
    if (store->count >= SESSIONS_MAX)
        return false;
    session_insert(store, &data);
    return true;
}

void session_store_free(struct session_store *store)
{
    if (!store)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        while (store->buckets[i]) {
            struct session *session = store->buckets[i];

            store->buckets[i] = session->next;
            free(session);
        }
    lock_destroy(&store->lock);
    free(store);
}

/* --- listing and removing --------------------------------------------------------------------- */

static int compare_age(const void *a, const void *b)
{
    const struct session_data *left = a, *right = b;

    if (left->info.created_ms != right->info.created_ms)
        return left->info.created_ms < right->info.created_ms ? -1 : 1;
    return strcmp(left->info.id, right->info.id);
}

/* Copies all sessions, oldest first. The caller frees the array. */
static struct session_data *sessions_copy(struct session_store *store, size_t *ret_count)
{
    struct session_data *all;
    size_t count = 0;

    lock_take(&store->lock);
    all = xcalloc(store->count + 1, sizeof(*all));
    for (size_t i = 0; i < BUCKETS; i++)
        for (const struct session *session = store->buckets[i]; session; session = session->next)
            all[count++] = session->data;
    lock_release(&store->lock);
    qsort(all, count, sizeof(*all), compare_age);
    *ret_count = count;
    return all;
}

static bool is_visible(const struct session_info *info, const struct caller *caller)
{
    return caller_sees(caller, info->login.caller.owner, info->login.caller.scope,
                       info->login.caller.scope_count);
}

void session_store_list(struct session_store *store, const struct caller *caller,
                        struct session_info **ret, size_t *ret_count)
{
    size_t all_count = 0, count = 0;
    cleanup_free struct session_data *all = sessions_copy(store, &all_count);

    *ret = xcalloc(all_count + 1, sizeof(**ret));
    for (size_t i = 0; i < all_count; i++)
        if (is_visible(&all[i].info, caller) && data_is_valid(store, &all[i]))
            (*ret)[count++] = all[i].info;
    *ret_count = count;
}

static int session_end(struct session_store *store, const char *id, const char *reason,
                       struct err *err)
{
    int r = store->storage.remove(store->storage.context, id, err);
    struct session_info info;
    bool is_dropped;

    if (r < 0)
        return r;
    lock_take(&store->lock);
    is_dropped = session_drop(store, id, &info);
    lock_release(&store->lock);
    if (is_dropped)
        store->storage.ended(store->storage.context, &info, reason);
    return 0;
}

int session_store_remove(struct session_store *store, const struct caller *caller, const char *id,
                         const char *reason, struct err *err)
{
    struct session_info info;

    if (!session_store_get(store, id, &info) || !is_visible(&info, caller)) {
        (void)err_set(err, ERR_NOT_FOUND, "no session '%.40s'", id);
        return err_remedy(err, "list sessions with 'holt console ls'");
    }
    if (info.login.caller.role > caller->role)
        return err_set(err, ERR_DENIED, "the role %s cannot end a session with %s",
                       role_name(caller->role), role_name(info.login.caller.role));
    return session_end(store, id, reason, err);
}

static int session_end_invalid(struct session_store *store, const struct session_data *data,
                               struct err *err)
{
    bool is_old = clock_wall_ms() >= data->info.expires_ms;
    const char *reason = data_is_current(store, data) ? "session" : "token";

    return session_end(store, data->info.id, is_old ? "expired" : reason, err);
}

int session_store_sweep(struct session_store *store, struct err *err)
{
    size_t count = 0;
    cleanup_free struct session_data *all = sessions_copy(store, &count);
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++)
        if (!data_is_valid(store, &all[i]))
            r = session_end_invalid(store, &all[i], err);
    return r;
}

/* --- creating --------------------------------------------------------------------------------- */

/* Ends the sessions that are no longer valid, and one of an owner that has too many of the same
 * kind: the oldest of the same token, or else the oldest whose role is not higher than the
 * caller's, so that a token with few rights does not end the sessions of others. */
static int room_make(struct session_store *store, const struct login *login, struct err *err)
{
    const struct caller *caller = &login->caller;
    size_t all_count = 0, own = 0;
    cleanup_free struct session_data *all = sessions_copy(store, &all_count);
    const char *oldest = NULL, *oldest_of_token = NULL;
    int r = 0;

    for (size_t i = 0; r == 0 && i < all_count; i++) {
        if (!data_is_valid(store, &all[i])) {
            r = session_end_invalid(store, &all[i], err);
        } else if (strcmp(all[i].info.login.caller.owner, caller->owner) == 0 &&
                   is_preview(&all[i].info.login) == is_preview(login)) {
            own++;
            if (!oldest && all[i].info.login.caller.role <= caller->role)
                oldest = all[i].info.id;
            if (!oldest_of_token && strcmp(all[i].info.login.caller.token, caller->token) == 0)
                oldest_of_token = all[i].info.id;
        }
    }
    if (r < 0 || own < SESSIONS_OF_OWNER_MAX)
        return r;
    oldest = oldest_of_token ? oldest_of_token : oldest;
    if (!oldest)
        return err_set(err, ERR_EXHAUSTED, "owner '%s' has %d sessions of higher roles",
                       caller->owner, SESSIONS_OF_OWNER_MAX);
    return session_end(store, oldest, "limit", err);
}

/* Makes the secrets of a session that has an id of its own. */
static int secrets_make(struct session_store *store, struct session_data *data,
                        struct session_secrets *ret)
{
    char digits[SESSION_HASH_HEX + 1];
    int r;

    do {
        r = random_hex(ret->cookie, SECRET_BYTES);
        if (r == 0)
            r = random_hex(ret->key, SECRET_BYTES);
        if (r < 0)
            return r;
        secret_hash(ret->cookie, data->cookie_hash);
        secret_hash(ret->key, data->key_hash);
        hex_encode(data->cookie_hash, SESSION_HASH_BYTES, digits);
        (void)snprintf(data->info.id, sizeof(data->info.id), "s%.*s", SESSION_ID_LEN - 1, digits);
        lock_scope(&store->lock);
        r = session_slot(store, data->info.id) != NULL;
    } while (r > 0);
    return 0;
}

static void data_fill(const struct session_store *store, const struct session_spec *spec,
                      struct session_data *ret)
{
    struct session_info *info = &ret->info;

    info->login = spec->login;
    info->created_ms = info->used_ms = clock_wall_ms();
    info->expires_ms = info->created_ms +
                       (is_preview(&spec->login) ? store->rules.preview_ms : store->rules.ttl_ms);
    (void)snprintf(ret->parent, sizeof(ret->parent), "%s", spec->login.caller.session);
    (void)snprintf(info->address, sizeof(info->address), "%s", spec->address);
    session_agent_copy(spec->agent, info->agent);
    if (spec->login.is_main)
        token_store_main_mark(store->tokens, ret->main_mark);
}

int session_store_create(struct session_store *store, const struct session_spec *spec,
                         struct session_info *ret, struct session_secrets *ret_secrets,
                         struct err *err)
{
    cleanup_free struct session_row *row = xcalloc(1, sizeof(*row));
    struct session_data data = { .info.id = "" };
    int r = room_make(store, &spec->login, err);

    if (r < 0)
        return r;
    data_fill(store, spec, &data);
    r = secrets_make(store, &data, ret_secrets);
    if (r < 0)
        return err_sys(err, r, "get random bytes");
    r = session_data_write(&data, row, err);
    if (r == 0)
        r = store->storage.put(store->storage.context, row, err);
    if (r < 0)
        return r;
    *ret = data.info;
    lock_take(&store->lock);
    if (store->count < SESSIONS_MAX)
        session_insert(store, &data);
    else
        r = err_set(err, ERR_EXHAUSTED, "session limit reached (%d)", SESSIONS_MAX);
    lock_release(&store->lock);
    if (r < 0)
        (void)store->storage.remove(store->storage.context, data.info.id, &(struct err){ 0 });
    return r;
}

/* --- logins ----------------------------------------------------------------------------------- */

/* Finds a place for a code: a free one, of an owner that has not too many; a preview takes the
 * oldest of the owner's previews then. NULL: there is none. Needs the lock. */
static struct login_code *code_place(struct session_store *store, const struct login *login)
{
    uint64_t now = clock_ms();
    struct login_code *place = NULL, *oldest = NULL;
    size_t own = 0;

    for (size_t i = 0; i < LOGIN_CODES_MAX; i++) {
        struct login_code *code = &store->codes[i];

        if (!code->is_used || code->until_ms <= now) {
            place = code;
        } else if (strcmp(code->login.caller.owner, login->caller.owner) == 0 &&
                   is_preview(&code->login) == is_preview(login)) {
            own++;
            oldest = !oldest || code->until_ms < oldest->until_ms ? code : oldest;
        }
    }
    if (own >= LOGIN_CODES_OF_OWNER_MAX)
        return is_preview(login) ? oldest : NULL;
    return place;
}

int session_store_create_code(struct session_store *store, const struct login *login,
                              char ret_code[SESSION_SECRET_SIZE], uint64_t *ret_expires_ms,
                              struct err *err)
{
    int r = random_hex(ret_code, SECRET_BYTES);
    struct login_code *code;

    if (r < 0)
        return err_sys(err, r, "get random bytes");
    lock_scope(&store->lock);
    code = code_place(store, login);
    if (!code)
        return err_set(err, ERR_EXHAUSTED,
                       "too many login codes wait for their use: try again in a minute");
    *code = (struct login_code){ .is_used = true,
                                 .login = *login,
                                 .until_ms = clock_after_ms(store->rules.code_ms) };
    secret_hash(ret_code, code->hash);
    *ret_expires_ms = clock_wall_ms() + store->rules.code_ms;
    return 0;
}

static bool code_find(struct session_store *store, const char *code,
                      const struct preview_target *target, bool is_taken, struct login *ret)
{
    static const struct preview_target none = { .port = 0 };
    unsigned char hash[SESSION_HASH_BYTES];
    uint64_t now = clock_ms();
    bool is_found = false;

    secret_hash(code, hash);
    lock_take(&store->lock);
    for (size_t i = 0; i < LOGIN_CODES_MAX; i++) {
        struct login_code *each = &store->codes[i];

        if (!each->is_used || !hash_is_equal(each->hash, hash))
            continue;
        is_found = each->until_ms > now;
        *ret = each->login;
        if (is_taken)
            *each = (struct login_code){ .is_used = false };
    }
    lock_release(&store->lock);
    return is_found && target_is_equal(&ret->preview, target ? target : &none) &&
           token_store_is_valid(store->tokens, ret->caller.token) &&
           (ret->caller.session[0] == '\0' || session_store_is_valid(store, ret->caller.session));
}

bool session_store_peek_code(struct session_store *store, const char *code, struct login *ret)
{
    return code_find(store, code, NULL, false, ret);
}

bool session_store_take_code(struct session_store *store, const char *code,
                             const struct preview_target *target, struct login *ret)
{
    return code_find(store, code, target, true, ret);
}

bool session_store_match_token(struct session_store *store, const char *token, struct login *ret)
{
    *ret = (struct login){ .is_main = false };
    token_store_match_key(store->tokens, token, &ret->caller);
    ret->is_main = ret->caller.role != ROLE_NONE && ret->caller.token[0] == '\0';
    return ret->caller.role != ROLE_NONE;
}
