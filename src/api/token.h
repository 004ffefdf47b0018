/* The secret that a client on TCP must show. */
#pragma once

#include <stdbool.h>

struct err;

enum { TOKEN_BYTES = 32, TOKEN_LEN = 2 * TOKEN_BYTES };

/* Reads <state_dir>/token, or makes it (mode 0600) with fresh random bytes. */
int token_load(const char *state_dir, char ret[TOKEN_LEN + 1], struct err *err);

/* Whether an Authorization header (NULL: absent) is "Bearer TOKEN". Takes the same time whatever
 * part of the token is wrong. */
bool token_matches(const char *header, const char token[TOKEN_LEN + 1]);
