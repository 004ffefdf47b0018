/* A login to the web console, or a preview of a port, as the registry keeps it: plain data, without
 * the secrets. */
#pragma once

#include <stdint.h>

#include "base/access/caller.h"

enum {
    SESSION_ID_LEN = CALLER_TOKEN_MAX, /* "s" and digits, which no id of a token begins with */
    SESSION_HASH_HEX = 64,             /* digits of a SHA-256 */
    SESSION_MARK_HEX = 32,
    SESSION_SCOPE_BYTES = 8 * 1024,
    SESSION_AGENT_MAX = 200,
    SESSION_ADDRESS_MAX = 63,
    SESSION_SANDBOX_MAX = 63,
};

struct session_row {
    char id[SESSION_ID_LEN + 1];
    char owner[OWNER_NAME_MAX + 1];
    char role[16];
    char token[CALLER_TOKEN_MAX + 1];     /* that made it; "": the unix socket or the main token */
    char main_mark[SESSION_MARK_HEX + 1]; /* of the main token that made it; "": another */
    char scope[SESSION_SCOPE_BYTES];      /* a JSON object: the labels of the token */
    char cookie_hash[SESSION_HASH_HEX + 1]; /* of the cookie's value */
    char key_hash[SESSION_HASH_HEX + 1];    /* of the value in X-Holt-Session */
    char address[SESSION_ADDRESS_MAX + 1];  /* of the browser */
    char agent[SESSION_AGENT_MAX + 1];      /* its User-Agent */
    uint64_t created_ms;
    uint64_t expires_ms;
    char sandbox[SESSION_SANDBOX_MAX + 1]; /* whose port a preview opens; "": a login */
    uint32_t port;
    char parent[SESSION_ID_LEN + 1]; /* the login that made the preview; "": none */
};
