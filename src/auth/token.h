/* The token that is always there: <state>/token, for whoever may read it. */
#pragma once

struct err;

enum { TOKEN_BYTES = 32, TOKEN_LEN = 2 * TOKEN_BYTES };

/* Reads <state_dir>/token, or makes it (mode 0600) with fresh random bytes. */
int token_load(const char *state_dir, char ret[TOKEN_LEN + 1], struct err *err);
