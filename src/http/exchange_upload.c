// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <microhttpd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "http/connect.h"
#include "http/exchange.h"
#include "http/exchange_internal.h"
#include "http/limits.h"
#include "http/reply.h"
#include "http/stream.h"
#include "http/upload_intake.h"
#include "wire/envelope.h"

/* The service's last word. */
static int upload_finish(const struct exchange *exchange, json_t **ret_reply, struct err *err)
{
    int r = upload_intake_finish(exchange->intake, ret_reply, err);

    if (r == -ECANCELED)
        exchange_explain_cancel(exchange, err);
    return r;
}

/* A client with much to send is told at once that it need not, and hung up on in the end. Not
 * behind TLS, where the socket is not ours to write to: it has to be heard out. */
static void refuse_early(struct exchange *exchange)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(REPLY_MAX);
    cleanup_json json_t *reply = NULL;
    struct err err = { 0 };

    if (exchange->is_answered || exchange->listener->is_tls ||
        upload_finish(exchange, &reply, &err) == 0 || envelope_add_end(&body, &err) < 0)
        return;
    exchange->is_answered = true;
    exchange_count(exchange, err.kind);
    reply_early(exchange->call.connection_fd, &body);
}

/* The service takes its time; then the client may be silent for some. One whose upload failed with
 * what it sent before is still sending. */
bool exchange_receive_upload(struct exchange *exchange, const char *data, size_t len)
{
    bool is_taken;

    if (exchange->discarded > 0) {
        client_connection_extend(exchange->client, len);
        refuse_early(exchange);
        return false;
    }
    client_connection_allow(exchange->client, CONNECTION_FOREVER);
    is_taken = upload_intake_take(exchange->intake, data, len);
    client_connection_allow(exchange->client, is_taken ? CONNECTION_IDLE_MS : CONNECTION_BODY_MS);
    return is_taken;
}

/* As a stream of one message. */
enum MHD_Result exchange_answer_upload(struct exchange *exchange, struct MHD_Connection *connection)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(REPLY_MAX);
    cleanup_json json_t *reply = NULL;
    struct err err = { 0 };
    int r;

    if (upload_finish(exchange, &reply, &err) < 0)
        return exchange_fail(exchange, connection, &err);
    r = message_add_take(&body, reply ? json_incref(reply) : json_object());
    if (r == 0)
        r = envelope_add_end(&body, NULL);
    if (r < 0) {
        (void)err_sys(&err, r, "write the reply");
        return exchange_fail(exchange, connection, &err);
    }
    exchange_count(exchange, ERR_NONE);
    client_connection_allow(exchange->client, CONNECTION_IDLE_MS);
    client_connection_extend(exchange->client, body.len);
    return reply_send(connection, MHD_HTTP_OK, CONNECT_STREAM_TYPE, &body);
}
