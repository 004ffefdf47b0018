/* The session of a request: a login to the console, proven by a cookie and by a header. Browsers
 * send a cookie to every port of a host name, and so perhaps to a stranger's program; only the
 * console's own page knows the value of the header. */
#pragma once

#include <stdbool.h>

struct caller;
struct exchange;
struct listener;

#define SESSION_HEADER "X-Holt-Session"
#define SESSION_COOKIE "holt_session"
#define SESSION_COOKIE_TLS "__Host-holt_session" /* browsers accept it over TLS only */

/* Whether the request is to be judged by its session: it has the header or the cookie, no
 * Authorization, and goes to a front end that allows it. */
bool session_is_used(const struct exchange *exchange);

/* Finds the caller of a request with both the cookie and the header; ROLE_NONE if they are not
 * those of one valid session. */
void session_find(const struct exchange *exchange, struct caller *ret);

/* Does the same for a key that did not come in the header: a WebSocket's first message. */
void session_find_by_key(const struct exchange *exchange, const char *key, struct caller *ret);

/* Finds the caller of the cookie alone; see session_store_match_cookie. */
void session_find_by_cookie(const struct exchange *exchange, struct caller *ret);

/* Returns the id that the validity of a caller depends on: of its session, or of its token. */
const char *credential_of(const struct caller *caller);

/* Returns whether the session or token of this id is valid; "" always is. */
bool credential_is_valid(const struct listener *listener, const char *id);
