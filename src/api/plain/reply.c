// SPDX-License-Identifier: Apache-2.0
#include "api/plain/reply.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/file_entry.h"
#include "http/connect.h"
#include "http/exchange.h"
#include "http/reply.h"

enum { ERROR_MAX = 64 * 1024 };

void plain_headers_add(struct MHD_Response *response, const char *tag)
{
    char quoted[ENTRY_TAG_SIZE + 2];

    (void)snprintf(quoted, sizeof(quoted), "\"%s\"", tag);
    if (*tag != '\0')
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, quoted);
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache, private");
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    (void)MHD_add_response_header(response, "Content-Security-Policy",
                                  "default-src 'none'; frame-ancestors 'none'; sandbox");
    (void)MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
}

bool plain_tag_matches(const struct exchange *exchange, const char *header, const char *tag)
{
    const char *list = exchange_header(exchange, header);
    char quoted[ENTRY_TAG_SIZE + 2];

    (void)snprintf(quoted, sizeof(quoted), "\"%s\"", tag);
    return list && (strcmp(list, "*") == 0 || strstr(list, quoted));
}

enum MHD_Result plain_fail(struct exchange *exchange, const struct err *err, unsigned status,
                           void (*headers_add)(struct MHD_Response *response))
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(ERROR_MAX);
    struct MHD_Response *response;
    enum MHD_Result result;

    if (connect_error_write(&body, err) < 0)
        return MHD_NO;
    response = reply_response(&body, CONNECT_UNARY_TYPE);
    if (!response)
        return MHD_NO;
    plain_headers_add(response, "");
    if (headers_add)
        headers_add(response);
    result = MHD_queue_response(exchange->connection,
                                status ? status : err_kind_row(err->kind)->http_status, response);
    MHD_destroy_response(response);
    return result;
}
