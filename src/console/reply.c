// SPDX-License-Identifier: Apache-2.0
#include "http/reply.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "console/console_internal.h"
#include "http/connect.h"
#include "http/exchange.h"

void console_headers_add(struct MHD_Response *response)
{
    static const char *const headers[][2] = {
        { "Content-Security-Policy",
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
          "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
          "frame-ancestors 'none'" },
        { "X-Content-Type-Options", "nosniff" },
        { "X-Frame-Options", "DENY" },
        { "Referrer-Policy", "no-referrer" },
        { "Cross-Origin-Opener-Policy", "same-origin" },
        { "Cross-Origin-Resource-Policy", "same-origin" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(headers); i++)
        (void)MHD_add_response_header(response, headers[i][0], headers[i][1]);
}

static enum MHD_Result json_send(struct exchange *exchange, unsigned status, struct buf *body,
                                 const char *name, const char *value)
{
    struct MHD_Response *response = reply_response(body, CONNECT_UNARY_TYPE);
    enum MHD_Result result;

    if (!response)
        return MHD_NO;
    console_headers_add(response);
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (name)
        (void)MHD_add_response_header(response, name, value);
    if (exchange->is_unauthenticated)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    result = MHD_queue_response(exchange->connection, status, response);
    MHD_destroy_response(response);
    return result;
}

enum MHD_Result console_reply(struct exchange *exchange, struct buf *body, const char *name,
                              const char *value)
{
    return json_send(exchange, MHD_HTTP_OK, body, name, value);
}

enum MHD_Result console_fail(struct exchange *exchange, const struct err *err)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(CONSOLE_REPLY_MAX);

    if (connect_error_write(&body, err) < 0)
        return MHD_NO;
    return json_send(exchange, err_kind_row(err->kind)->http_status, &body, NULL, NULL);
}

enum MHD_Result console_refuse(struct exchange *exchange, const struct refusal *refusal)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(CONSOLE_REPLY_MAX);
    struct err err;

    (void)err_set(&err, refusal->kind, "%s", refusal->message);
    if (connect_error_write(&body, &err) < 0)
        return MHD_NO;
    return json_send(exchange, refusal->http_status, &body, refusal->header, refusal->value);
}
