/* The main token, <state>/token, which always exists and has full access. */
#pragma once

struct err;

enum { TOKEN_BYTES = 32, TOKEN_LEN = 2 * TOKEN_BYTES };

/* Reads <state_dir>/token, or creates it (mode 0600) from random bytes. */
int token_load(const char *state_dir, char ret[TOKEN_LEN + 1], struct err *err);
