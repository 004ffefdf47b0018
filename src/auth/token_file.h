/* The files of tokens: <state>/tokens/<id>, mode 0600, one for each, so that creating and removing
 * one costs the same however many there are.
 *
 *   {"id": "1f0c9a3e", "label": "ci", "owner": "root", "role": "user", "scope": {"team": "red"},
 *    "hash": "<64 hex digits>", "createdMs": 1763222400000, "expiresMs": 0}
 *
 * hash is the SHA-256 of the token as it is written. A slow hash would protect guessable passwords;
 * a token is 256 random bits, which nobody guesses from a fast one either.
 *
 * Before there were owners, all tokens were in <state>/tokens.json; they become root's. */
#pragma once

#include <stddef.h>

#include "auth/token_store.h"

struct err;

/* As stored: a hash, from which the token cannot be recovered. */
struct token_row {
    struct token_info info;
    unsigned char hash[TOKEN_HASH_BYTES];
};

/* Opens the directory of tokens, and makes it if there is none. Returns a descriptor. */
int token_dir_open(int state_fd, struct err *err);

typedef void token_row_fn(void *context, const struct token_row *row);

/* Passes every token to each(). Files that were never complete are removed; damaged ones are
 * reported and stay. */
int token_files_read(int dir_fd, token_row_fn *each, void *context, struct err *err);

/* Moves the tokens of an old tokens.json into files of their own. Repeating it after a crash does
 * no harm. */
int token_file_migrate(int state_fd, int dir_fd, struct err *err);

/* The file is on disk when this returns. */
int token_file_write(int dir_fd, const struct token_row *row, struct err *err);

/* The file is gone for good when this returns. */
int token_file_remove(int dir_fd, const char *id, struct err *err);
