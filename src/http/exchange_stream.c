// SPDX-License-Identifier: Apache-2.0
#include <microhttpd.h>

#include "api/route.h"
#include "api/stream/raw_session.h"
#include "base/cleanup.h"
#include "http/connect.h"
#include "http/exchange.h"
#include "http/exchange_internal.h"
#include "http/limits.h"
#include "http/stream.h"
#include "http/upload_intake.h"
#include "wire/raw.h"

enum { STREAM_BLOCK = 1024 }; /* libmicrohttpd's own buffer, which chunked replies do not use */

static bool is_late(void *context, struct err *err)
{
    return exchange_is_late(context, err);
}

static bool is_stopped(void *context, struct err *err)
{
    return exchange_is_stopped(context, err);
}

static void on_end(void *context, enum err_kind kind)
{
    exchange_count(context, kind);
}

enum MHD_Result exchange_answer_stream(struct exchange *exchange, struct MHD_Connection *connection,
                                       const json_t *request)
{
    const struct stream_owner owner = { is_late, is_stopped, on_end, exchange };
    struct stream *stream = NULL;
    struct stream_reply *reply;
    struct MHD_Response *response;
    struct err err = { 0 };
    enum MHD_Result result;

    if (exchange->route->stream(&exchange->call, request, &stream, &err) < 0)
        return exchange_fail(exchange, connection, &err);
    reply = stream_reply_new(stream, &owner);
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, stream_reply_read,
                                                 reply, stream_reply_free);
    if (!response) {
        stream_reply_free(reply);
        return MHD_NO;
    }
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, CONNECT_STREAM_TYPE);
    /* At its deadline nobody reads from the connection any more, and its header is long gone. */
    if (exchange->deadline_ns != CONNECTION_FOREVER)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

/* Has the connection's thread to itself. The parameters are libmicrohttpd's. */
// NOLINTNEXTLINE(readability-function-size)
static void on_upgrade(void *cls, struct MHD_Connection *connection, void *slot, const char *early,
                       size_t early_len, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
    struct exchange *exchange = cls;
    const struct stream_owner owner = { is_late, is_stopped, on_end, exchange };
    const struct raw_client client = { fd, early, early_len };

    (void)connection, (void)slot;
    if (exchange->raw_upload)
        raw_upload_run(exchange->listener->raw_sessions, TAKE_PTR(exchange->raw_upload), &owner,
                       &client);
    else
        raw_session_run(exchange->listener->raw_sessions, TAKE_PTR(exchange->raw_stream), &owner,
                        &client);
    (void)MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
}

/* A client that goes away before it has the answer leaves the stream to exchange_free. Of a client
 * stream, the body was only the beginning. */
enum MHD_Result exchange_answer_raw(struct exchange *exchange, struct MHD_Connection *connection,
                                    const json_t *request)
{
    struct MHD_Response *response;
    struct err err = { 0 };
    enum MHD_Result result;
    int r;

    r = exchange->intake
            ? upload_intake_begun(exchange->intake, &exchange->raw_upload, &err)
            : exchange->route->stream(&exchange->call, request, &exchange->raw_stream, &err);
    if (r < 0)
        return exchange_fail(exchange, connection, &err);
    response = MHD_create_response_for_upgrade(on_upgrade, exchange);
    if (!response)
        return MHD_NO;
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_UPGRADE, RAW_PROTOCOL);
    result = MHD_queue_response(connection, MHD_HTTP_SWITCHING_PROTOCOLS, response);
    MHD_destroy_response(response);
    return result;
}
