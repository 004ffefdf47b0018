/* Logins to the web console. A session is two secrets of 256 bits: the cookie, which a browser
 * sends to every port of a host name, and the key, which the console's page sends in a header of
 * its own. Only both together give access, with the rights of the token (or of the user of the unix
 * socket) that made the session. It ends by its time, by a logout or a revocation, and with that
 * token. Hashes of the secrets are kept by a storage that the daemon provides.
 *
 * A preview is a session of its own kind: its cookie opens one port of one sandbox and nothing
 * else. It ends like a login, and with the login that made it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/access/session.h"

struct err;
struct session_store;
struct token_store;

enum {
    SESSIONS_MAX = 4096,
    SESSIONS_OF_OWNER_MAX = 64, /* one more ends the oldest */
    SESSION_SECRET_SIZE = 64 + 1,
    LOGIN_CODES_MAX = 256,
    LOGIN_CODES_OF_OWNER_MAX = 16,
    LOGIN_CODE_MS = 60 * 1000,
    PREVIEW_MS = 8 * 60 * 60 * 1000,
};

/* What a preview opens. */
struct preview_target {
    char sandbox[SESSION_SANDBOX_MAX + 1]; /* its id; "": this is no preview */
    uint16_t port;
};

/* On whose behalf a login or a preview is made. */
struct login {
    struct caller caller;
    bool is_main; /* with the main token, and not over the unix socket */
    struct preview_target preview;
};

struct session_info {
    char id[SESSION_ID_LEN + 1];
    struct login login;
    char address[SESSION_ADDRESS_MAX + 1];
    char agent[SESSION_AGENT_MAX + 1];
    uint64_t created_ms; /* since 1970 */
    uint64_t expires_ms;
    uint64_t used_ms; /* last; 0: not since the daemon was started */
};

/* Keeps the sessions across restarts. */
struct session_storage {
    int (*put)(void *context, const struct session_row *row, struct err *err);
    int (*remove)(void *context, const char *id, struct err *err);
    /* Called once for each session that has ended, without a lock. The reason is a word. */
    void (*ended)(void *context, const struct session_info *info, const char *reason);
    void *context;
};

struct session_rules {
    uint64_t ttl_ms;     /* of a login */
    uint64_t code_ms;    /* of a code that nobody uses */
    uint64_t preview_ms; /* of a preview */
    bool has_logins;     /* false: the console is off, and there are only previews */
};

/* Makes a store without sessions; tokens must outlive it. */
struct session_store *session_store_new(struct token_store *tokens,
                                        const struct session_storage *storage,
                                        const struct session_rules *rules);

/* Returns whether there can be logins to the console. */
bool session_store_has_logins(const struct session_store *store);

/* Adds a session of an earlier daemon. Returns false if the row is not a session that can still be
 * used: the storage may forget it. */
bool session_store_load(struct session_store *store, const struct session_row *row);

/* Accepts NULL. */
void session_store_free(struct session_store *store);

struct session_spec {
    struct login login;
    const char *address; /* of the browser */
    const char *agent;   /* its User-Agent; NULL: none */
};

struct session_secrets {
    char cookie[SESSION_SECRET_SIZE];
    char key[SESSION_SECRET_SIZE];
};

/* Creates and stores a session. The secrets themselves are not stored. */
int session_store_create(struct session_store *store, const struct session_spec *spec,
                         struct session_info *ret, struct session_secrets *ret_secrets,
                         struct err *err);

/* Finds the caller of a login by both of its secrets; ROLE_NONE if they do not belong to one login
 * that is valid. */
void session_store_match(struct session_store *store, const char *cookie, const char *key,
                         struct caller *ret);

/* Finds the caller of a preview of this port by its cookie; ROLE_NONE if it is another's. */
void session_store_match_preview(struct session_store *store, const char *cookie,
                                 const struct preview_target *target, struct caller *ret);

/* Finds the caller of a login by its cookie alone. This is no authentication: a caller must have
 * another secret of the same session, such as a ticket, before it acts. */
void session_store_match_cookie(struct session_store *store, const char *cookie,
                                struct caller *ret);

/* Returns whether the session of this id is valid, and so is the token that made it. */
bool session_store_is_valid(struct session_store *store, const char *id);

/* Reads a valid session. Returns false if there is none. */
bool session_store_get(struct session_store *store, const char *id, struct session_info *ret);

/* Lists the sessions that the caller may see, oldest first: an admin all, others those of their
 * owner. The caller frees the array. */
void session_store_list(struct session_store *store, const struct caller *caller,
                        struct session_info **ret, size_t *ret_count);

/* Ends a session that the caller may see, for this reason. Fails with ERR_DENIED if the role of the
 * session is higher than the caller's. */
int session_store_remove(struct session_store *store, const struct caller *caller, const char *id,
                         const char *reason, struct err *err);

/* Ends the sessions that are no longer valid: "expired", or "token" if that is gone. */
int session_store_sweep(struct session_store *store, struct err *err);

/* Makes a code that one login may use once, before it expires. Codes do not survive a restart.
 */
int session_store_create_code(struct session_store *store, const struct login *login,
                              char ret_code[SESSION_SECRET_SIZE], uint64_t *ret_expires_ms,
                              struct err *err);

/* Finds on whose behalf a code logs in, and leaves it valid. Returns false as take_code does. */
bool session_store_peek_code(struct session_store *store, const char *code, struct login *ret);

/* Takes a code for this port, or one for a login if the target is NULL. Returns false if it is
 * unknown, used, too old or for something else, or if the token or login that made it is not valid.
 * Any attempt uses the code up. */
bool session_store_take_code(struct session_store *store, const char *code,
                             const struct preview_target *target, struct login *ret);

/* Finds on whose behalf a token logs in. Returns false if there is no such token. */
bool session_store_match_token(struct session_store *store, const char *token, struct login *ret);
