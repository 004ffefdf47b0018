/* Tokens that give access over TCP, and on whose behalf. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/access/caller.h"

struct err;
struct token_store;

enum {
    TOKENS_MAX = 20000,
    TOKEN_ID_LEN = CALLER_TOKEN_MAX,
    TOKEN_LABEL_MAX = 64,
    TOKEN_HASH_BYTES = 32,
    TOKEN_SECRET_SIZE = 5 + 64 + 1, /* "holt_", a prefix for secret scanners, and 256 bits */
    TOKEN_PORT_SIZE = 10 + 64 + 1,  /* "holt_port_", the id of the token and 224 bits */
};

struct token_info {
    char id[TOKEN_ID_LEN + 1];
    char label[TOKEN_LABEL_MAX + 1]; /* a note for people */
    enum role role;
    char owner[OWNER_NAME_MAX + 1];
    struct label scope[CALLER_SCOPE_MAX];
    size_t scope_count;
    uint64_t created_ms; /* since 1970 */
    uint64_t expires_ms; /* 0: never */
    uint64_t used_ms;    /* last; 0: not since the daemon was started */
};

/* Reads the tokens of this state directory. */
int token_store_open(const char *state_dir, struct token_store **ret, struct err *err);

/* Accepts NULL. */
void token_store_close(struct token_store *store);

/* Adds the main token, which is root's, with all rights, and is not stored. */
void token_store_add_main(struct token_store *store, const char *token);

/* Finds the caller of an Authorization header (NULL: absent); its role is ROLE_NONE if there is no
 * such token. Tokens are found by their hash: the duration reveals nothing of the token, and does
 * not depend on how many there are. */
void token_store_match(struct token_store *store, const char *header, struct caller *ret);

/* The same for a bare token, which may have the form that E2B's clients require: "e2b_" and its
 * hexadecimal digits. */
void token_store_match_key(struct token_store *store, const char *key, struct caller *ret);

/* Returns whether a call with the token of this id may go on: the token was neither removed nor has
 * it expired. "" stands for the unix socket and the main token, which are always valid. */
bool token_store_is_valid(struct token_store *store, const char *id);

/* Writes digits that stand for the main token, from which it cannot be recovered; they change with
 * it. ret holds TOKEN_MAIN_MARK_SIZE. */
enum { TOKEN_MAIN_MARK_SIZE = 32 + 1 };
void token_store_main_mark(struct token_store *store, char ret[TOKEN_MAIN_MARK_SIZE]);

/* Derives the port token of a sandbox from a new token: it opens the ports of this sandbox and
 * nothing else, as long as the token is valid, and the token cannot be recovered from it. */
void token_port_derive(const struct token_info *info, const char *secret, const char *sandbox_id,
                       char ret[TOKEN_PORT_SIZE]);

/* Finds the caller of a port token of this sandbox, or of a token; ROLE_NONE if it is neither. */
void token_store_match_port(struct token_store *store, const char *text, const char *sandbox_id,
                            struct caller *ret);

struct token_spec {
    const char *label; /* NULL: none */
    const char *owner;
    enum role role;
    const struct label *scope;
    size_t scope_count;
    uint64_t ttl_ms;     /* 0: does not expire */
    uint64_t expires_ms; /* when it expires at the latest, since 1970; 0: no bound */
};

/* Creates and stores a token. The secret itself is not stored. */
int token_store_create(struct token_store *store, const struct token_spec *spec,
                       struct token_info *ret, char ret_secret[TOKEN_SECRET_SIZE], struct err *err);

/* Lists the tokens that have not expired and that the caller may see, oldest first: an admin all,
 * others those of their owner. The caller frees the array. */
void token_store_list(struct token_store *store, const struct caller *caller,
                      struct token_info **ret, size_t *ret_count);

/* Reads a valid token. Returns false if there is none. */
bool token_store_get(struct token_store *store, const char *id, struct token_info *ret);

/* Removes a token that the caller may see, and returns its last state. Fails with ERR_DENIED if the
 * role of the token is higher than the caller's. */
int token_store_remove(struct token_store *store, const struct caller *caller, const char *id,
                       struct token_info *ret, struct err *err);
