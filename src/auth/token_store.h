/* Tokens that give access over TCP, and their scopes. */
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
    TOKEN_SECRET_SIZE = 5 + 64 + 1, /* "holt_", a prefix for secret scanners, and 256 bits */
    TOKEN_PORT_SIZE = 10 + 64 + 1,  /* "holt_port_" and 256 bits */
};

enum token_access {
    ACCESS_NONE,
    ACCESS_READ, /* read-only methods */
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

/* As stored: a hash, from which the token cannot be recovered. */
struct token_row {
    struct token_info info;
    unsigned char hash[TOKEN_HASH_BYTES];
    atomic_uint_fast64_t used_ms;
};

/* Reads the tokens of this state directory. */
int token_store_open(const char *state_dir, struct token_store **ret, struct err *err);

/* Accepts NULL. */
void token_store_close(struct token_store *store);

/* Adds the main token, which has full access and is not in the file. */
void token_store_add_main(struct token_store *store, const char *token);

/* Returns the access of an Authorization header (NULL: absent). Compares every token in constant
 * time, so that the duration reveals nothing. */
enum token_access token_store_match(struct token_store *store, const char *header);

/* The same for a bare token, which may have the form that E2B's clients require: "e2b_" and its
 * hexadecimal digits. */
enum token_access token_store_match_key(struct token_store *store, const char *key);

/* Derives the port token of a sandbox from a token: it opens the ports of this sandbox and nothing
 * else, as long as the token is valid, and the token cannot be recovered from it. */
void token_port_derive(const char *secret, const char *sandbox_id, char ret[TOKEN_PORT_SIZE]);

/* Whether a text is a port token of this sandbox, or a token with full access. */
bool token_store_match_port(struct token_store *store, const char *text, const char *sandbox_id);

struct token_spec {
    const char *label; /* NULL: none */
    bool is_read_only;
    uint64_t ttl_ms; /* 0: does not expire */
};

/* Creates and stores a token. The secret itself is not stored. */
int token_store_create(struct token_store *store, const struct token_spec *spec,
                       struct token_info *ret, char ret_secret[TOKEN_SECRET_SIZE], struct err *err);

/* Lists the tokens that have not expired, oldest first. The caller frees the array. */
void token_store_list(struct token_store *store, struct token_info **ret, size_t *ret_count);

int token_store_remove(struct token_store *store, const char *id, struct err *err);
