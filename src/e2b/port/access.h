/* Access to ports: tokens of Holt for ports that are not public, how a browser passes one, and
 * which web pages may use a port. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>

struct e2b_request;

/* The header, the cookie and the parameter of a query that carry a token; see docs/ports.md. The
 * code of a preview is exchanged for a cookie that is no token. */
#define PORT_TOKEN_HEADER "Holt-Token"
#define PORT_TOKEN_COOKIE "holt-token"
#define PORT_TOKEN_QUERY "holt-token"
#define PREVIEW_QUERY "holt-preview"
#define PREVIEW_COOKIE "holt-preview"
#define PREVIEW_COOKIE_TLS "__Host-holt-preview" /* browsers accept it over TLS only */

/* Whether the request has a token of Holt that opens the ports of this sandbox (Holt's id). */
bool port_access_is_allowed(const struct e2b_request *request, const char *id);

/* Whether the request has a valid token, for which this sandbox does not exist. */
bool port_access_is_foreign(const struct e2b_request *request, const char *id);

/* Whether a header has a credential for Holt: a token (valid or not), an API key, or the access
 * token of this sandbox. Credentials of the program behind the port are none. */
bool port_access_is_credential(const struct e2b_request *request, const char *name,
                               const char *value);

/* Whether a browser opens the link of a preview. Such a request is not forwarded. */
bool port_access_has_code(const struct e2b_request *request);

/* Exchanges the code for a cookie (request->preview). Returns whether the browser has access: by
 * the code, or by a cookie that it has from before. */
bool port_access_take_code(struct e2b_request *request, const char *id);

/* Whether a browser passes a valid token or code in the URL. Such a request is not forwarded. */
bool port_access_is_login(const struct e2b_request *request);

/* Stores the token or the preview of a login as a cookie of this host name, and redirects to the
 * same URL without it. Only for a request that is a login. */
enum MHD_Result port_access_login(struct e2b_request *request);

/* Whether a web page may send the request: any page may read, but only pages of the same sandbox,
 * or of a configured origin, may change anything or open a WebSocket. */
bool port_origin_is_allowed(const struct e2b_request *request);
