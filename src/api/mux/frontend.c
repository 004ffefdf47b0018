// SPDX-License-Identifier: Apache-2.0
#include "api/mux/frontend.h"

#include <openssl/sha.h>
#include <string.h>
#include <strings.h>

#include "api/mux/mux.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/base64.h"
#include "http/connect_call.h"
#include "http/exchange.h"
#include "http/limits.h"
#include "http/reply.h"
#include "http/session.h"

#define MUX_PATH "/holt.v1/stream"
#define WEBSOCKET_GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11" /* of RFC 6455 */

enum { KEY_LEN = 24, KEY_BYTES = 16, ACCEPT_MAX = 64 };

static const struct refusal refuse_no_websocket = {
    426, ERR_INVALID, MUX_PATH " is a WebSocket (version 13)", "Upgrade", "websocket", false,
};
static const struct refusal refuse_verb_get = {
    405, ERR_UNSUPPORTED, MUX_PATH " is opened with GET", "Allow", "GET", false,
};

static bool mux_owns(const char *path, const char *verb)
{
    (void)verb;
    return strcmp(path, MUX_PATH) == 0;
}

static bool mux_claim(struct exchange *exchange)
{
    return mux_owns(exchange->path, exchange->verb);
}

static bool header_has(const struct exchange *exchange, const char *name, const char *word)
{
    const char *value = exchange_header(exchange, name);

    return value && strcasestr(value, word);
}

static bool is_websocket(const struct exchange *exchange)
{
    cleanup_with(buf_done) struct buf bytes = BUF_INIT(KEY_LEN);
    const char *version = exchange_header(exchange, "Sec-WebSocket-Version");
    const char *key = exchange_header(exchange, "Sec-WebSocket-Key");

    return header_has(exchange, MHD_HTTP_HEADER_UPGRADE, "websocket") &&
           header_has(exchange, MHD_HTTP_HEADER_CONNECTION, "upgrade") && version &&
           strcmp(version, "13") == 0 && key && strlen(key) == KEY_LEN &&
           base64_decode(&bytes, key, KEY_LEN) == 0 && bytes.len == KEY_BYTES;
}

/* A browser cannot add a header to a WebSocket: it sends the key of its session in the first frame.
 */
static bool comes_with_cookie(const struct exchange *exchange)
{
    struct caller caller = { .role = ROLE_NONE };

    if (session_is_used(exchange) && !exchange_header(exchange, SESSION_HEADER))
        session_find_by_cookie(exchange, &caller);
    return caller.role != ROLE_NONE;
}

static const struct refusal *access_check(struct exchange *exchange)
{
    const struct refusal *refusal =
        exchange_check_origin(exchange, exchange_header(exchange, MHD_HTTP_HEADER_HOST), false);

    if (refusal)
        return refusal;
    refusal = exchange_find_caller(exchange);
    return refusal && comes_with_cookie(exchange) ? NULL : refusal;
}

static enum MHD_Result mux_begin(struct exchange *exchange)
{
    exchange->refusal = access_check(exchange);
    exchange->is_unauthenticated = exchange->refusal != NULL;
    if (!exchange->refusal && strcmp(exchange->verb, MHD_HTTP_METHOD_GET) != 0)
        exchange->refusal = &refuse_verb_get;
    if (!exchange->refusal && !is_websocket(exchange))
        exchange->refusal = &refuse_no_websocket;
    return MHD_YES;
}

static enum MHD_Result mux_receive(struct exchange *exchange, const char *data, size_t len)
{
    (void)data;
    client_connection_extend(exchange->client, len);
    return exchange_discard(exchange, len);
}

/* Runs on the connection's own thread. The parameters are libmicrohttpd's. */
// NOLINTNEXTLINE(readability-function-size)
static void on_upgrade(void *cls, struct MHD_Connection *connection, void *slot, const char *early,
                       size_t early_len, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
    struct exchange *exchange = cls;
    const struct raw_client client = { fd, early, early_len };

    (void)connection, (void)slot;
    mux_run(exchange, &client);
    (void)MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
}

static int accept_write(const char *key, struct buf *ret)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(KEY_LEN + sizeof(WEBSOCKET_GUID));
    unsigned char hash[SHA_DIGEST_LENGTH];
    int r = buf_printf(&text, "%s" WEBSOCKET_GUID, key);

    if (r < 0)
        return r;
    SHA1((const unsigned char *)text.data, text.len, hash);
    return base64_encode(ret, hash, sizeof(hash));
}

static enum MHD_Result mux_answer(struct exchange *exchange)
{
    cleanup_with(buf_done) struct buf accept = BUF_INIT(ACCEPT_MAX);
    struct MHD_Response *response;
    enum MHD_Result result;

    if (accept_write(exchange_header(exchange, "Sec-WebSocket-Key"), &accept) < 0)
        return MHD_NO;
    response = MHD_create_response_for_upgrade(on_upgrade, exchange);
    if (!response)
        return MHD_NO;
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_UPGRADE, "websocket");
    (void)MHD_add_response_header(response, "Sec-WebSocket-Accept", accept.data);
    result = MHD_queue_response(exchange->connection, MHD_HTTP_SWITCHING_PROTOCOLS, response);
    MHD_destroy_response(response);
    return result;
}

const struct frontend_ops mux_frontend = {
    .name = "stream",
    .owns = mux_owns,
    .claim = mux_claim,
    .has_sessions = true,
    .begin = mux_begin,
    .receive = mux_receive,
    .answer = mux_answer,
};
