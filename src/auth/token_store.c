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
#include "base/lock.h"
#include "base/random.h"
#include "base/text/hex.h"
#include "base/xalloc.h"

_Static_assert((int)TOKEN_HASH_BYTES == (int)SHA256_DIGEST_LENGTH, "tokens are kept as SHA-256");

#define SECRET_PREFIX "holt_"
#define E2B_PREFIX "e2b_"
#define PORT_PREFIX "holt_port_"

enum { SECRET_BYTES = 32 };

struct token_store {
    int state_fd;
    struct lock change; /* held while a new list is made and written */

    struct lock lock; /* protects everything below */
    struct token_row *rows;
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

int token_store_open(const char *state_dir, struct token_store **ret, struct err *err)
{
    cleanup_close int state_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct token_store *store;
    struct token_row *rows = NULL;
    size_t count = 0;
    int r;

    if (state_fd < 0)
        return err_sys(err, -errno, "open %s", state_dir);
    r = token_file_read(state_fd, &rows, &count, err);
    if (r < 0)
        return r;
    store = xcalloc(1, sizeof(*store));
    store->state_fd = TAKE_FD(state_fd);
    store->rows = rows;
    store->count = count;
    lock_init(&store->change, LOCK_TOKEN_CHANGE);
    lock_init(&store->lock, LOCK_TOKENS);
    *ret = store;
    return 0;
}

void token_store_close(struct token_store *store)
{
    if (!store)
        return;
    lock_destroy(&store->lock);
    lock_destroy(&store->change);
    (void)fd_close(store->state_fd);
    free(store->rows);
    free(store);
}

void token_store_add_main(struct token_store *store, const char *token)
{
    lock_take(&store->lock);
    hash_text(token, store->main_hash);
    store->has_main = true;
    lock_release(&store->lock);
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

/* Needs the lock. */
static enum token_access row_match(struct token_store *store, const unsigned char *hash,
                                   uint64_t now)
{
    bool is_main = is_equal(hash, store->main_hash) && store->has_main;
    enum token_access access = is_main ? ACCESS_FULL : ACCESS_NONE;

    for (size_t i = 0; i < store->count; i++) {
        struct token_row *row = &store->rows[i];

        if (!is_equal(hash, row->hash) || is_expired(&row->info, now))
            continue;
        access = row->info.is_read_only ? ACCESS_READ : ACCESS_FULL;
        atomic_store(&row->used_ms, now);
    }
    return access;
}

static enum token_access match_text(struct token_store *store, const char *token)
{
    unsigned char hash[TOKEN_HASH_BYTES];

    hash_text(token, hash);
    lock_scope(&store->lock);
    return row_match(store, hash, clock_wall_ms());
}

enum token_access token_store_match(struct token_store *store, const char *header)
{
    return match_text(store, bearer_of(header));
}

/* The digits are those of the main token, which has no prefix, or of any other token. */
enum token_access token_store_match_key(struct token_store *store, const char *key)
{
    char secret[TOKEN_SECRET_SIZE];
    enum token_access access;

    if (strncmp(key, E2B_PREFIX, strlen(E2B_PREFIX)) != 0)
        return match_text(store, key);
    key += strlen(E2B_PREFIX);
    (void)snprintf(secret, sizeof(secret), SECRET_PREFIX "%.64s", key);
    access = match_text(store, key);
    return access != ACCESS_NONE || strlen(key) != 2 * (size_t)SECRET_BYTES
               ? access
               : match_text(store, secret);
}

/* HMAC-SHA256 of the sandbox, with the stored hash of the token as the key. */
static void port_token_make(const unsigned char *hash, const char *sandbox_id,
                            char ret[TOKEN_PORT_SIZE])
{
    cleanup_free char *text = xasprintf("ports of %s", sandbox_id);
    unsigned char digest[TOKEN_HASH_BYTES];
    char digits[2 * TOKEN_HASH_BYTES + 1];

    (void)HMAC(EVP_sha256(), hash, TOKEN_HASH_BYTES, (const unsigned char *)text, strlen(text),
               digest, NULL);
    hex_encode(digest, sizeof(digest), digits);
    (void)snprintf(ret, TOKEN_PORT_SIZE, PORT_PREFIX "%s", digits);
}

void token_port_derive(const char *secret, const char *sandbox_id, char ret[TOKEN_PORT_SIZE])
{
    unsigned char hash[TOKEN_HASH_BYTES];

    hash_text(secret, hash);
    port_token_make(hash, sandbox_id, ret);
}

static bool port_token_is_of(const unsigned char *hash, const char *text, const char *sandbox_id)
{
    char wanted[TOKEN_PORT_SIZE];

    port_token_make(hash, sandbox_id, wanted);
    return CRYPTO_memcmp(text, wanted, TOKEN_PORT_SIZE - 1) == 0;
}

static bool port_token_match(struct token_store *store, const char *text, const char *sandbox_id)
{
    uint64_t now = clock_wall_ms();
    bool is_valid;

    lock_scope(&store->lock);
    is_valid = store->has_main && port_token_is_of(store->main_hash, text, sandbox_id);
    for (size_t i = 0; i < store->count; i++) {
        struct token_row *row = &store->rows[i];

        if (row->info.is_read_only || is_expired(&row->info, now) ||
            !port_token_is_of(row->hash, text, sandbox_id))
            continue;
        is_valid = true;
        atomic_store(&row->used_ms, now);
    }
    return is_valid;
}

bool token_store_match_port(struct token_store *store, const char *text, const char *sandbox_id)
{
    if (strlen(text) == TOKEN_PORT_SIZE - 1 && strncmp(text, PORT_PREFIX, strlen(PORT_PREFIX)) == 0)
        return port_token_match(store, text, sandbox_id);
    return token_store_match_key(store, text) == ACCESS_FULL;
}

/* Copies the list without expired tokens and without this id (NULL: with all). The caller holds the
 * change lock. */
static struct token_row *rows_copy(const struct token_store *store, const char *without,
                                   size_t *ret_count)
{
    struct token_row *rows = xcalloc(TOKENS_MAX, sizeof(*rows));
    uint64_t now = clock_wall_ms();
    size_t count = 0;

    for (size_t i = 0; i < store->count; i++) {
        struct token_row *row = &store->rows[i];

        if (is_expired(&row->info, now) || (without && strcmp(row->info.id, without) == 0))
            continue;
        rows[count].info = row->info;
        memcpy(rows[count].hash, row->hash, sizeof(row->hash));
        atomic_store(&rows[count].used_ms, atomic_load(&row->used_ms));
        count++;
    }
    *ret_count = count;
    return rows;
}

/* Replaces the list after writing it to disk. Takes the rows. */
static int rows_set(struct token_store *store, struct token_row *rows, size_t count,
                    struct err *err)
{
    struct token_row *old;
    int r = token_file_write(store->state_fd, rows, count, err);

    if (r < 0) {
        free(rows);
        return r;
    }
    lock_take(&store->lock);
    old = store->rows;
    store->rows = rows;
    store->count = count;
    lock_release(&store->lock);
    free(old);
    return 0;
}

static int row_make(const struct token_spec *spec, struct token_row *ret,
                    char ret_secret[TOKEN_SECRET_SIZE])
{
    unsigned char bytes[SECRET_BYTES + TOKEN_ID_LEN / 2];

    if (random_bytes(bytes, sizeof(bytes)) < 0)
        return -EIO;
    (void)snprintf(ret_secret, TOKEN_SECRET_SIZE, SECRET_PREFIX);
    hex_encode(bytes, SECRET_BYTES, ret_secret + strlen(SECRET_PREFIX));
    hex_encode(bytes + SECRET_BYTES, TOKEN_ID_LEN / 2, ret->info.id);
    hash_text(ret_secret, ret->hash);
    (void)snprintf(ret->info.label, sizeof(ret->info.label), "%s", spec->label ? spec->label : "");
    ret->info.is_read_only = spec->is_read_only;
    ret->info.created_ms = clock_wall_ms();
    ret->info.expires_ms = spec->ttl_ms ? ret->info.created_ms + spec->ttl_ms : 0;
    return 0;
}

/* The caller holds the change lock. */
static int token_create(struct token_store *store, const struct token_spec *spec,
                        struct token_info *ret, char ret_secret[TOKEN_SECRET_SIZE], struct err *err)
{
    size_t count = 0;
    struct token_row *rows = rows_copy(store, NULL, &count);
    int r = 0;

    if (count == TOKENS_MAX)
        r = err_set(err, ERR_EXHAUSTED, "there are %d tokens, which is the most", TOKENS_MAX);
    else if (row_make(spec, &rows[count], ret_secret) < 0)
        r = err_sys(err, -EIO, "get random bytes");
    if (r < 0) {
        free(rows);
        return r;
    }
    *ret = rows[count].info;
    return rows_set(store, rows, count + 1, err);
}

int token_store_create(struct token_store *store, const struct token_spec *spec,
                       struct token_info *ret, char ret_secret[TOKEN_SECRET_SIZE], struct err *err)
{
    lock_scope(&store->change);

    return token_create(store, spec, ret, ret_secret, err);
}

void token_store_list(struct token_store *store, struct token_info **ret, size_t *ret_count)
{
    uint64_t now = clock_wall_ms();
    size_t count = 0;

    *ret = xcalloc(TOKENS_MAX, sizeof(**ret));
    lock_take(&store->lock);
    for (size_t i = 0; i < store->count; i++) {
        struct token_row *row = &store->rows[i];

        if (is_expired(&row->info, now))
            continue;
        (*ret)[count] = row->info;
        (*ret)[count++].used_ms = atomic_load(&row->used_ms);
    }
    lock_release(&store->lock);
    *ret_count = count;
}

/* The caller holds the change lock. */
static bool token_exists(const struct token_store *store, const char *id)
{
    uint64_t now = clock_wall_ms();

    for (size_t i = 0; i < store->count; i++)
        if (strcmp(store->rows[i].info.id, id) == 0)
            return !is_expired(&store->rows[i].info, now);
    return false;
}

int token_store_remove(struct token_store *store, const char *id, struct err *err)
{
    size_t count = 0;
    int r;

    lock_scope(&store->change);
    if (token_exists(store, id)) {
        struct token_row *rows = rows_copy(store, id, &count);

        r = rows_set(store, rows, count, err);
    } else {
        r = err_set(err, ERR_NOT_FOUND, "no token '%.40s'", id);
    }
    return r;
}
