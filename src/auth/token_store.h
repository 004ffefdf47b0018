/* Which secrets open the TCP door, and how wide. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct token_store;

enum {
    TOKENS_MAX = 1000,
    TOKEN_ID_LEN = 8,
    TOKEN_LABEL_MAX = 64,
    TOKEN_HASH_BYTES = 32,
    TOKEN_SECRET_SIZE = 5 + 64 + 1, /* "holt_", which scanners for secrets find, and 256 bits */
};

enum token_access {
    ACCESS_NONE,
    ACCESS_READ, /* methods that only look */
    ACCESS_FULL,
};

struct token_info {
    char id[TOKEN_ID_LEN + 1];
    char label[TOKEN_LABEL_MAX + 1];
    bool is_read_only;
    uint64_t created_ms; /* since 1970 */
    uint64_t expires_ms; /* 0: never */
    uint64_t used_ms;    /* last; 0: not since the daemon was started */
};

/* As kept: not the token, which nobody can get back. */
struct token_row {
    struct token_info info;
    unsigned char hash[TOKEN_HASH_BYTES];
    atomic_uint_fast64_t used_ms;
};

/* Reads the tokens of this state directory. */
int token_store_open(const char *state_dir, struct token_store **ret, struct err *err);

/* Accepts NULL. */
void token_store_close(struct token_store *store);

/* A token beside those of the file, that may do everything. */
void token_store_add_main(struct token_store *store, const char *token);

/* What the bearer of an Authorization header (NULL: absent) may do. Looks at every token, whichever
 * fits: how long it takes says nothing about any of them. */
enum token_access token_store_match(struct token_store *store, const char *header);

/* The same for a bare token, also in the form that E2B's clients insist on: "e2b_" and its
 * hexadecimal digits. */
enum token_access token_store_match_key(struct token_store *store, const char *key);

struct token_spec {
    const char *label; /* NULL: none */
    bool is_read_only;
    uint64_t ttl_ms; /* 0: for ever */
};

/* Makes a token and writes it down. The secret is not kept. */
int token_store_create(struct token_store *store, const struct token_spec *spec,
                       struct token_info *ret, char ret_secret[TOKEN_SECRET_SIZE], struct err *err);

/* All that have not expired, oldest first. The caller frees them. */
void token_store_list(struct token_store *store, struct token_info **ret, size_t *ret_count);

int token_store_remove(struct token_store *store, const char *id, struct err *err);
