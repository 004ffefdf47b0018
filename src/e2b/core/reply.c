// SPDX-License-Identifier: Apache-2.0
#include "http/reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "e2b/core/e2b.h"
#include "http/connect.h"
#include "http/exchange.h"
#include "http/limits.h"

const char *e2b_header(const struct e2b_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

const char *e2b_query(const struct e2b_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

void e2b_header_add(struct e2b_request *request, const char *name, const char *value)
{
    if (request->header_count == E2B_HEADERS_MAX)
        return;
    request->headers[request->header_count].name = name;
    request->headers[request->header_count++].value = xstrdup(value);
}

/* Several kinds have the same status, and some statuses have none. */
static enum err_kind kind_of(unsigned status)
{
    if (status < MHD_HTTP_BAD_REQUEST)
        return ERR_NONE;
    if (status == MHD_HTTP_BAD_GATEWAY)
        return ERR_UNAVAILABLE;
    if (status == MHD_HTTP_CONTENT_TOO_LARGE || status == MHD_HTTP_INSUFFICIENT_STORAGE)
        return ERR_EXHAUSTED;
    for (enum err_kind kind = ERR_INVALID; kind < ERR_KINDS; kind++)
        if (err_kind_row(kind)->http_status == status)
            return kind;
    return status < MHD_HTTP_INTERNAL_SERVER_ERROR ? ERR_INVALID : ERR_INTERNAL;
}

enum MHD_Result e2b_reply_response(struct e2b_request *request, unsigned status,
                                   struct MHD_Response *response)
{
    enum MHD_Result result;

    if (!response)
        return MHD_NO;
    if (status != MHD_HTTP_OK || !request->route || !request->route->stream) /* which ends later */
        request->outcome = kind_of(status);
    for (size_t i = 0; i < request->header_count; i++)
        (void)MHD_add_response_header(response, request->headers[i].name,
                                      request->headers[i].value);
    result = MHD_queue_response(request->connection, status, response);
    MHD_destroy_response(response);
    return result;
}

enum MHD_Result e2b_reply_json(struct e2b_request *request, unsigned status, json_t *body)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(REPLY_MAX);
    cleanup_json json_t *owned = body;
    struct MHD_Response *response;

    if (!owned || json_write(owned, &text) < 0)
        return MHD_NO;
    client_connection_allow(request->exchange->client, CONNECTION_IDLE_MS);
    client_connection_extend(request->exchange->client, text.len);
    response = MHD_create_response_from_buffer(text.len, text.data, MHD_RESPMEM_MUST_FREE);
    if (!response)
        return MHD_NO;
    text = (struct buf){ .max = text.max };
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, CONNECT_UNARY_TYPE);
    return e2b_reply_response(request, status, response);
}

enum MHD_Result e2b_reply_empty(struct e2b_request *request, unsigned status)
{
    client_connection_allow(request->exchange->client, CONNECTION_IDLE_MS);
    return e2b_reply_response(request, status,
                              MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT));
}

enum MHD_Result e2b_reply_error(struct e2b_request *request, unsigned status, const char *format,
                                ...)
{
    char message[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    return e2b_reply_json(
        request, status,
        json_pack("{s:i, s:o}", "code", (int)status, "message", json_text(message)));
}

enum MHD_Result e2b_reply_gone(struct e2b_request *request)
{
    return e2b_reply_json(request, MHD_HTTP_BAD_GATEWAY,
                          json_pack("{s:s, s:s, s:i}", "sandboxId", request->to.sandbox, "message",
                                    "The sandbox was not found", "code", MHD_HTTP_BAD_GATEWAY));
}

/* Whether an error says that a sandbox does not run. */
static bool is_gone(const struct err *err)
{
    return err->cause == CAUSE_SESSION_NOT_FOUND || err->cause == CAUSE_SESSION_PAUSED ||
           err->cause == CAUSE_SESSION_DESTROYING || err->cause == CAUSE_INVALID_STATE;
}

unsigned e2b_status_of(const struct err *err)
{
    if (err->cause == CAUSE_NO_SPACE || err->cause == CAUSE_QUOTA_EXCEEDED)
        return MHD_HTTP_INSUFFICIENT_STORAGE;
    if (err->cause == CAUSE_SHUTTING_DOWN)
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    if (err->kind == ERR_BUSY || err->kind == ERR_EXISTS)
        return MHD_HTTP_CONFLICT;
    return err_kind_row(err->kind)->http_status;
}

/* Clients retry by themselves after the time in Retry-After. */
static void retry_after_add(struct e2b_request *request, unsigned status, const struct err *err)
{
    if ((status == MHD_HTTP_TOO_MANY_REQUESTS || status == MHD_HTTP_SERVICE_UNAVAILABLE) &&
        err_is_retryable(err))
        e2b_header_add(request, MHD_HTTP_HEADER_RETRY_AFTER, "1");
}

enum MHD_Result e2b_reply_err(struct e2b_request *request, const struct err *err)
{
    unsigned status = e2b_status_of(err);

    if (request->to.kind != E2B_CONTROL && is_gone(err))
        return e2b_reply_gone(request);
    if (err->kind == ERR_INTERNAL)
        log_warn("e2b: %s %s: %s", request->verb, request->path, err->msg);
    retry_after_add(request, status, err);
    return e2b_reply_error(request, status, "%s", err->msg);
}
