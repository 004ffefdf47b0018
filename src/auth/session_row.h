/* A session in memory, and its conversion to and from the row that is kept. */
#pragma once

#include <stdbool.h>

#include "auth/session_store.h"

enum { SESSION_HASH_BYTES = 32 };

struct session_data {
    struct session_info info;
    char main_mark[SESSION_MARK_HEX + 1];
    char parent[SESSION_ID_LEN + 1];
    unsigned char cookie_hash[SESSION_HASH_BYTES];
    unsigned char key_hash[SESSION_HASH_BYTES];
};

/* Fails with ERR_INTERNAL if the labels of the scope do not fit. */
int session_data_write(const struct session_data *data, struct session_row *ret, struct err *err);

/* Returns false for a row that is no session. */
bool session_data_read(const struct session_row *row, struct session_data *ret);

/* Copies a User-Agent header (NULL: absent), with '?' for everything but printable ASCII. */
void session_agent_copy(const char *agent, char ret[SESSION_AGENT_MAX + 1]);
