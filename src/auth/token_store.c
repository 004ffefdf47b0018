// SPDX-License-Identifier: Apache-2.0
#include "auth/token_store.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "auth/token_file.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/lock.h"
#include "base/random.h"
#include "base/text/hex.h"
#include "base/xalloc.h"

_Static_assert((int)TOKEN_HASH_BYTES == (int)SHA256_DIGEST_LENGTH, "tokens are kept as SHA-256");

#define SECRET_PREFIX "holt_"
#define E2B_PREFIX "e2b_"
#define PORT_PREFIX "holt_port_"

enum { SECRET_BYTES = 32, BUCKETS = 1 << 14 };

/* A token in memory. */
struct token {
    struct token_row row;
    struct token *next_by_hash, *next_by_id; /* of the same bucket */
};

struct token_store {
    int dir_fd;
    struct lock change; /* held while a token is written or removed */

    struct lock lock; /* protects everything below */
    struct token *by_hash[BUCKETS], *by_id[BUCKETS];
    size_t count;
    unsigned char main_hash[TOKEN_HASH_BYTES];
    bool has_main;
};

static bool is_expired(const struct token_info *info, uint64_t now)
{
    return info->expires_ms != 0 && info->expires_ms <= now;
}

static void hash_text(const char *text, unsigned char ret[TOKEN_HASH_BYTES])
{
    (void)SHA256((const unsigned char *)text, strlen(text), ret);
}

static bool is_equal(const unsigned char *a, const unsigned char *b)
{
    return CRYPTO_memcmp(a, b, TOKEN_HASH_BYTES) == 0;
}

/* --- the tables; these need the lock ---------------------------------------------------------- */

static struct token **hash_bucket(struct token_store *store, const unsigned char *hash)
{
    return &store->by_hash[((unsigned)hash[0] << 8 | hash[1]) % BUCKETS];
}

static struct token **id_bucket(struct token_store *store, const char *id)
{
    return &store->by_id[strtoul(id, NULL, 16) % BUCKETS];
}

static struct token *token_by_hash(struct token_store *store, const unsigned char *hash)
{
    struct token *token = *hash_bucket(store, hash);

    while (token && !is_equal(token->row.hash, hash))
        token = token->next_by_hash;
    return token;
}

static struct token *token_by_id(struct token_store *store, const char *id)
{
    struct token *token = *id_bucket(store, id);

    while (token && strcmp(token->row.info.id, id) != 0)
        token = token->next_by_id;
    return token;
}

static void token_insert(struct token_store *store, const struct token_row *row)
{
    struct token *token = xcalloc(1, sizeof(*token));
    struct token **by_hash = hash_bucket(store, row->hash);
    struct token **by_id = id_bucket(store, row->info.id);

    token->row = *row;
    token->next_by_hash = *by_hash;
    token->next_by_id = *by_id;
    *by_hash = *by_id = token;
    store->count++;
}

static void token_delete(struct token_store *store, struct token *token)
{
    struct token **at = hash_bucket(store, token->row.hash);

    while (*at != token)
        at = &(*at)->next_by_hash;
    *at = token->next_by_hash;
    at = id_bucket(store, token->row.info.id);
    while (*at != token)
        at = &(*at)->next_by_id;
    *at = token->next_by_id;
    store->count--;
    free(token);
}

/* --- opening and closing ---------------------------------------------------------------------- */

static void row_load(void *context, const struct token_row *row)
{
    struct token_store *store = context;

    lock_scope(&store->lock);
    token_insert(store, row);
}

int token_store_open(const char *state_dir, struct token_store **ret, struct err *err)
{
    cleanup_close int state_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct token_store *store;
    int r;

    if (state_fd < 0)
        return err_sys(err, -errno, "open %s", state_dir);
    store = xcalloc(1, sizeof(*store));
    lock_init(&store->change, LOCK_TOKEN_CHANGE);
    lock_init(&store->lock, LOCK_TOKENS);
    store->dir_fd = r = token_dir_open(state_fd, err);
    if (r >= 0)
        r = token_file_migrate(state_fd, store->dir_fd, err);
    if (r >= 0)
        r = token_files_read(store->dir_fd, row_load, store, err);
    if (r < 0) {
        token_store_close(store);
        return r;
    }
    *ret = store;
    return 0;
}

void token_store_close(struct token_store *store)
{
    if (!store)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        while (store->by_hash[i])
            token_delete(store, store->by_hash[i]);
    lock_destroy(&store->lock);
    lock_destroy(&store->change);
    (void)fd_close(store->dir_fd);
    free(store);
}

void token_store_add_main(struct token_store *store, const char *token)
{
    lock_scope(&store->lock);
    hash_text(token, store->main_hash);
    store->has_main = true;
}

void token_store_main_mark(struct token_store *store, char ret[TOKEN_MAIN_MARK_SIZE])
{
    unsigned char digest[TOKEN_HASH_BYTES];

    lock_scope(&store->lock);
    (void)SHA256(store->main_hash, sizeof(store->main_hash), digest);
    hex_encode(digest, (TOKEN_MAIN_MARK_SIZE - 1) / 2, ret);
}

/* --- finding the caller ----------------------------------------------------------------------- */

static void caller_set(const struct token_info *info, struct caller *ret)
{
    *ret = (struct caller){ .role = info->role, .scope_count = info->scope_count };
    (void)snprintf(ret->owner, sizeof(ret->owner), "%s", info->owner);
    (void)snprintf(ret->token, sizeof(ret->token), "%s", info->id);
    memcpy(ret->scope, info->scope, sizeof(ret->scope));
}

/* Needs the lock. */
static void token_use(struct token *token, struct caller *ret)
{
    uint64_t now = clock_wall_ms();

    if (!token || is_expired(&token->row.info, now))
        return;
    token->row.info.used_ms = now;
    caller_set(&token->row.info, ret);
}

static void match_text(struct token_store *store, const char *text, struct caller *ret)
{
    unsigned char hash[TOKEN_HASH_BYTES];

    *ret = (struct caller){ .role = ROLE_NONE };
    hash_text(text, hash);
    lock_scope(&store->lock);
    if (store->has_main && is_equal(hash, store->main_hash))
        *ret = caller_root;
    else
        token_use(token_by_hash(store, hash), ret);
}

/* Returns the token behind "Bearer ", or "". */
static const char *bearer_of(const char *header)
{
    static const char scheme[] = "Bearer ";

    if (!header || strncasecmp(header, scheme, strlen(scheme)) != 0)
        return "";
    header += strlen(scheme);
    return header + strspn(header, " ");
}

void token_store_match(struct token_store *store, const char *header, struct caller *ret)
{
    match_text(store, bearer_of(header), ret);
}

/* The digits are those of the main token, which has no prefix, or of any other token. */
void token_store_match_key(struct token_store *store, const char *key, struct caller *ret)
{
    char secret[TOKEN_SECRET_SIZE];

    if (strncmp(key, E2B_PREFIX, strlen(E2B_PREFIX)) != 0) {
        match_text(store, key, ret);
        return;
    }
    key += strlen(E2B_PREFIX);
    match_text(store, key, ret);
    if (ret->role != ROLE_NONE || strlen(key) != 2 * (size_t)SECRET_BYTES)
        return;
    (void)snprintf(secret, sizeof(secret), SECRET_PREFIX "%.64s", key);
    match_text(store, secret, ret);
}

bool token_store_is_valid(struct token_store *store, const char *id)
{
    const struct token *token;

    if (id[0] == '\0')
        return true;
    lock_scope(&store->lock);
    token = token_by_id(store, id);
    return token && !is_expired(&token->row.info, clock_wall_ms());
}

bool token_store_get(struct token_store *store, const char *id, struct token_info *ret)
{
    const struct token *token;

    lock_scope(&store->lock);
    token = token_by_id(store, id);
    if (!token || is_expired(&token->row.info, clock_wall_ms()))
        return false;
    *ret = token->row.info;
    return true;
}

/* --- tokens of ports -------------------------------------------------------------------------- */

/* The id, then a part of the HMAC-SHA256 of the sandbox, with the stored hash of the token as the
 * key. */
static void port_token_make(const char *id, const unsigned char *hash, const char *sandbox_id,
                            char ret[TOKEN_PORT_SIZE])
{
    cleanup_free char *text = xasprintf("ports of %s", sandbox_id);
    unsigned char digest[TOKEN_HASH_BYTES];
    char digits[2 * TOKEN_HASH_BYTES + 1];

    (void)HMAC(EVP_sha256(), hash, TOKEN_HASH_BYTES, (const unsigned char *)text, strlen(text),
               digest, NULL);
    hex_encode(digest, sizeof(digest), digits);
    (void)snprintf(ret, TOKEN_PORT_SIZE, PORT_PREFIX "%s%s", id, digits);
}

void token_port_derive(const struct token_info *info, const char *secret, const char *sandbox_id,
                       char ret[TOKEN_PORT_SIZE])
{
    unsigned char hash[TOKEN_HASH_BYTES];

    hash_text(secret, hash);
    port_token_make(info->id, hash, sandbox_id, ret);
}

static void port_token_match(struct token_store *store, const char *text, const char *sandbox_id,
                             struct caller *ret)
{
    char id[TOKEN_ID_LEN + 1], wanted[TOKEN_PORT_SIZE];
    struct token *token;

    *ret = (struct caller){ .role = ROLE_NONE };
    (void)snprintf(id, sizeof(id), "%.*s", TOKEN_ID_LEN, text + strlen(PORT_PREFIX));
    lock_scope(&store->lock);
    token = token_by_id(store, id);
    if (!token || token->row.info.role == ROLE_READ)
        return;
    port_token_make(id, token->row.hash, sandbox_id, wanted);
    if (CRYPTO_memcmp(text, wanted, TOKEN_PORT_SIZE - 1) == 0)
        token_use(token, ret);
}

void token_store_match_port(struct token_store *store, const char *text, const char *sandbox_id,
                            struct caller *ret)
{
    if (strlen(text) == TOKEN_PORT_SIZE - 1 && strncmp(text, PORT_PREFIX, strlen(PORT_PREFIX)) == 0)
        port_token_match(store, text, sandbox_id, ret);
    else
        token_store_match_key(store, text, ret);
}

/* --- changing and listing --------------------------------------------------------------------- */

static int row_make(const struct token_spec *spec, struct token_row *ret,
                    char ret_secret[TOKEN_SECRET_SIZE])
{
    unsigned char bytes[SECRET_BYTES + TOKEN_ID_LEN / 2];
    struct token_info *info = &ret->info;

    if (random_bytes(bytes, sizeof(bytes)) < 0)
        return -EIO;
    (void)snprintf(ret_secret, TOKEN_SECRET_SIZE, SECRET_PREFIX);
    hex_encode(bytes, SECRET_BYTES, ret_secret + strlen(SECRET_PREFIX));
    hex_encode(bytes + SECRET_BYTES, TOKEN_ID_LEN / 2, info->id);
    hash_text(ret_secret, ret->hash);
    (void)snprintf(info->label, sizeof(info->label), "%s", spec->label ? spec->label : "");
    (void)snprintf(info->owner, sizeof(info->owner), "%s", spec->owner);
    info->role = spec->role;
    info->scope_count = spec->scope_count;
    for (size_t i = 0; i < spec->scope_count; i++)
        info->scope[i] = spec->scope[i];
    info->created_ms = clock_wall_ms();
    info->expires_ms = spec->ttl_ms ? info->created_ms + spec->ttl_ms : spec->expires_ms;
    if (spec->expires_ms && info->expires_ms > spec->expires_ms)
        info->expires_ms = spec->expires_ms;
    return 0;
}

/* Fails if the owner has its share of the tokens. The caller holds the change lock. */
static int share_check(const struct token_store *store, const char *owner, struct err *err)
{
    const size_t share = owner_share(owner, TOKENS_MAX);
    size_t count = 0;

    for (size_t i = 0; i < BUCKETS; i++)
        for (const struct token *token = store->by_id[i]; token; token = token->next_by_id)
            count += strcmp(token->row.info.owner, owner) == 0;
    if (count < share)
        return 0;
    return err_set(err, ERR_EXHAUSTED, "owner '%s' has %zu tokens, which is the most of one owner",
                   owner, share);
}

/* Removes the expired tokens, their files first. The caller holds the change lock. */
static void expired_remove(struct token_store *store)
{
    uint64_t now = clock_wall_ms();
    struct err ignored;

    for (size_t i = 0; i < BUCKETS; i++) {
        struct token *token = store->by_id[i], *next;

        for (; token; token = next) {
            next = token->next_by_id;
            if (!is_expired(&token->row.info, now) ||
                token_file_remove(store->dir_fd, token->row.info.id, &ignored) < 0)
                continue;
            lock_scope(&store->lock);
            token_delete(store, token);
        }
    }
}

/* Finds an id that no token has. The caller holds the change lock. */
static int row_make_unique(struct token_store *store, const struct token_spec *spec,
                           struct token_row *ret, char ret_secret[TOKEN_SECRET_SIZE],
                           struct err *err)
{
    do {
        if (row_make(spec, ret, ret_secret) < 0)
            return err_sys(err, -EIO, "get random bytes");
    } while (token_by_id(store, ret->info.id));
    return 0;
}

int token_store_create(struct token_store *store, const struct token_spec *spec,
                       struct token_info *ret, char ret_secret[TOKEN_SECRET_SIZE], struct err *err)
{
    struct token_row row = { .info.role = ROLE_NONE };
    int r;

    lock_scope(&store->change);
    expired_remove(store);
    if (store->count >= TOKENS_MAX)
        return err_set(err, ERR_EXHAUSTED, "there are %d tokens, which is the most", TOKENS_MAX);
    r = share_check(store, spec->owner, err);
    if (r < 0)
        return r;
    r = row_make_unique(store, spec, &row, ret_secret, err);
    if (r == 0)
        r = token_file_write(store->dir_fd, &row, err);
    if (r < 0)
        return r;
    fault_point("token.created");
    *ret = row.info;
    lock_take(&store->lock);
    token_insert(store, &row);
    lock_release(&store->lock);
    return 0;
}

static bool is_visible(const struct token_info *info, const struct caller *caller, uint64_t now)
{
    return !is_expired(info, now) &&
           caller_sees(caller, info->owner, info->scope, info->scope_count);
}

static int compare_age(const void *a, const void *b)
{
    const struct token_info *left = a, *right = b;

    if (left->created_ms != right->created_ms)
        return left->created_ms < right->created_ms ? -1 : 1;
    return strcmp(left->id, right->id);
}

void token_store_list(struct token_store *store, const struct caller *caller,
                      struct token_info **ret, size_t *ret_count)
{
    uint64_t now = clock_wall_ms();
    size_t count = 0;

    lock_take(&store->lock);
    *ret = xcalloc(store->count + 1, sizeof(**ret));
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct token *token = store->by_id[i]; token; token = token->next_by_id)
            if (is_visible(&token->row.info, caller, now))
                (*ret)[count++] = token->row.info;
    lock_release(&store->lock);
    qsort(*ret, count, sizeof(**ret), compare_age);
    *ret_count = count;
}

int token_store_remove(struct token_store *store, const struct caller *caller, const char *id,
                       struct token_info *ret, struct err *err)
{
    struct token *token;
    int r;

    lock_scope(&store->change);
    token = token_by_id(store, id); /* only a change, which we hold, removes it */
    if (!token || !is_visible(&token->row.info, caller, clock_wall_ms())) {
        (void)err_set(err, ERR_NOT_FOUND, "no token '%.40s'", id);
        return err_remedy(err, "list tokens with 'holt token ls'");
    }
    if (token->row.info.role > caller->role)
        return err_set(err, ERR_DENIED, "a token with the role %s cannot remove one with %s",
                       role_name(caller->role), role_name(token->row.info.role));
    r = token_file_remove(store->dir_fd, id, err);
    if (r < 0)
        return r;
    fault_point("token.removed");
    lock_take(&store->lock);
    *ret = token->row.info;
    token_delete(store, token);
    lock_release(&store->lock);
    return 0;
}
