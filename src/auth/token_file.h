/* The file of tokens: <state>/tokens.json, mode 0600, replaced atomically.
 *
 *   {"tokens": [{"id": "1f0c9a3e", "label": "ci", "readOnly": true, "hash": "<64 hex digits>",
 *                "createdMs": 1763222400000, "expiresMs": 0}]}
 *
 * hash is the SHA-256 of the token as it is written. A slow hash would protect guessable passwords;
 * a token is 256 random bits, which nobody guesses from a fast one either. */
#pragma once

#include <stddef.h>

struct err;
struct token_row;

/* Reads all tokens; none if there is no file. The caller frees the rows. */
int token_file_read(int dir_fd, struct token_row **ret, size_t *ret_count, struct err *err);

/* Replaces the file, which is on disk when this returns. */
int token_file_write(int dir_fd, const struct token_row *rows, size_t count, struct err *err);
