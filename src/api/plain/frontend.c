// SPDX-License-Identifier: Apache-2.0
#include "api/plain/frontend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/frontend.h"
#include "api/plain/download.h"
#include "api/plain/patience.h"
#include "api/plain/reply.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "host/sandbox/sandbox.h"
#include "host/worker/file.h"
#include "http/connect.h"
#include "http/exchange.h"
#include "http/limits.h"
#include "http/reply.h"
#include "wire/file_message.h"

#define PLAIN_PATH "/holt.v1/file"

enum { MODE_DIGITS_MAX = 4, REPLY_BYTES = 64 * 1024 };

static const struct refusal refuse_plain_verb = {
    405, ERR_UNSUPPORTED, PLAIN_PATH " takes GET, HEAD and PUT", "Allow", "GET, HEAD, PUT", false,
};

struct plain_query {
    const char *sandbox, *path, *user;
    uint32_t mode;
    bool has_mode, has_parents;
    const char *wrong; /* name of a parameter that cannot be used; NULL: none */
};

/* A request, and for PUT the file that is being written. */
struct plain_request {
    struct plain_query query;
    struct sandbox *sandbox;
    struct file_call *files;
    char match[ENTRY_TAG_SIZE];
    struct patience patience;
};

/* --- the query -------------------------------------------------------------------------------- */

static bool mode_read(const char *text, uint32_t *ret)
{
    size_t len = strlen(text);

    if (len == 0 || len > MODE_DIGITS_MAX || strspn(text, "01234567") != len)
        return false;
    *ret = (uint32_t)strtoul(text, NULL, 8);
    return true;
}

static bool field_set(struct plain_query *query, const char *name, const char *value)
{
    if (strcmp(name, "sandbox") == 0)
        query->sandbox = value;
    else if (strcmp(name, "path") == 0)
        query->path = value;
    else if (strcmp(name, "user") == 0)
        query->user = value;
    else if (strcmp(name, "mode") == 0)
        return query->has_mode = mode_read(value, &query->mode);
    else if (strcmp(name, "parents") == 0)
        return query->has_parents = strcmp(value, "true") == 0;
    else
        return false;
    return true;
}

/* The parameters are libmicrohttpd's. */
// NOLINTNEXTLINE(readability-function-size)
static enum MHD_Result query_field(void *context, enum MHD_ValueKind kind, const char *name,
                                   size_t name_len, const char *value, size_t value_len)
{
    struct plain_query *query = context;

    (void)kind;
    if (!value || strlen(name) != name_len || strlen(value) != value_len ||
        !field_set(query, name, value))
        query->wrong = name;
    return query->wrong ? MHD_NO : MHD_YES;
}

static int query_read(const struct exchange *exchange, struct plain_query *ret, struct err *err)
{
    *ret = (struct plain_query){ .sandbox = "", .path = "", .user = "" };
    (void)MHD_get_connection_values_n(exchange->connection, MHD_GET_ARGUMENT_KIND, query_field,
                                      ret);
    if (ret->wrong)
        return err_set(err, ERR_INVALID, "query parameter '%.40s' is not valid", ret->wrong);
    if (*ret->sandbox == '\0' || *ret->path == '\0')
        return err_set(err, ERR_INVALID, "the query needs sandbox=ID and path=PATH");
    return 0;
}

/* --- PUT -------------------------------------------------------------------------------------- */

/* Takes If-Match with one tag, or If-None-Match: *. A tag that is no tag of ours matches nothing.
 */
static int condition_read(struct exchange *exchange, struct plain_request *request,
                          struct file_request *ret, struct err *err)
{
    const char *match = exchange_header(exchange, MHD_HTTP_HEADER_IF_MATCH);
    const char *none = exchange_header(exchange, MHD_HTTP_HEADER_IF_NONE_MATCH);
    size_t len = match ? strlen(match) : 0;

    if ((match && none) || (none && strcmp(none, "*") != 0))
        return err_set(err, ERR_INVALID, "PUT takes If-Match: \"TAG\" or If-None-Match: *");
    if (!match && !none)
        return 0;
    ret->flags |= FILE_IF_MATCH;
    ret->to = request->match;
    if (match && (len < 3 || len - 2 >= ENTRY_TAG_SIZE || match[0] != '"' || match[len - 1] != '"'))
        return err_set(err, ERR_INVALID, "If-Match must be one tag that GET or PUT has given");
    if (match)
        memcpy(request->match, match + 1, len - 2);
    return 0;
}

static int upload_begin(struct exchange *exchange, struct plain_request *request, struct err *err)
{
    const struct plain_query *query = &request->query;
    const struct api *api = exchange->frontend->context;
    struct file_request wish = {
        .type = FILE_WRITE,
        .path = query->path,
        .to = "",
        .after = "",
        .user = query->user,
        .mode = query->mode,
        .flags = FILE_ATOMIC | (query->has_mode ? FILE_HAS_MODE : 0U) |
                 (query->has_parents ? FILE_PARENTS : 0U),
    };
    int r = condition_read(exchange, request, &wish, err);

    if (r == 0 && !caller_may_change(&exchange->caller))
        r = err_set(err, ERR_DENIED, "this token is read-only");
    if (r == 0)
        r = sandbox_find(api->host, &exchange->caller, query->sandbox, &request->sandbox, err);
    if (r == 0)
        r = file_call_open(request->sandbox, exchange->connection_fd, false, &request->files, err);
    return r < 0 ? r : file_call_send_request(request->files, &wish, err);
}

/* 412 for a file that is not the one that the client has seen. */
static unsigned status_of(const struct plain_request *request)
{
    const char *path;

    return request->files && file_call_failure(request->files, &path) == ESTALE
               ? MHD_HTTP_PRECONDITION_FAILED
               : 0;
}

static enum MHD_Result upload_reply(struct exchange *exchange, const struct file_entry *entry)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(REPLY_BYTES);
    struct msg_file_entry message = file_entry_message(entry);
    struct MHD_Response *response;
    char tag[ENTRY_TAG_SIZE];
    enum MHD_Result result;

    entry_tag(entry, tag);
    if (schema_encode(MESSAGE(msg_write_file_response, .entry = &message), ENCODE_ALL, &body) < 0)
        return MHD_NO;
    response = reply_response(&body, CONNECT_UNARY_TYPE);
    if (!response)
        return MHD_NO;
    plain_headers_add(response, tag);
    result = MHD_queue_response(exchange->connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result upload_answer(struct exchange *exchange, struct plain_request *request)
{
    struct file_answer answer = { 0 };
    int r;

    if (exchange->is_failed || exchange_is_stopped(exchange, &exchange->err))
        return plain_fail(exchange, &exchange->err, status_of(request), NULL);
    client_connection_allow(exchange->client, CONNECTION_FOREVER);
    r = file_call_send_end(request->files, &exchange->err);
    if (r == 0)
        r = file_call_next(request->files, &answer, &exchange->err);
    if (r < 0)
        return plain_fail(exchange, &exchange->err, status_of(request), NULL);
    answer.entry.path = request->query.path;
    return upload_reply(exchange, &answer.entry);
}

/* --- requests --------------------------------------------------------------------------------- */

static bool is_put(const struct exchange *exchange)
{
    return strcmp(exchange->verb, MHD_HTTP_METHOD_PUT) == 0;
}

static bool is_read(const struct exchange *exchange)
{
    return strcmp(exchange->verb, MHD_HTTP_METHOD_GET) == 0 ||
           strcmp(exchange->verb, MHD_HTTP_METHOD_HEAD) == 0;
}

static bool plain_owns(const char *path, const char *verb)
{
    (void)verb;
    return strcmp(path, PLAIN_PATH) == 0;
}

static enum MHD_Result plain_begin(struct exchange *exchange)
{
    struct plain_request *request = xcalloc(1, sizeof(*request));
    int r;

    exchange->state = request;
    if (!is_put(exchange) && !is_read(exchange)) {
        exchange->refusal = &refuse_plain_verb;
        return MHD_YES;
    }
    r = query_read(exchange, &request->query, &exchange->err);
    caller_set_current(&exchange->caller);
    if (r == 0 && is_put(exchange))
        r = upload_begin(exchange, request, &exchange->err);
    exchange->is_failed = r < 0;
    patience_start(exchange, &request->patience);
    return MHD_YES;
}

static enum MHD_Result plain_receive(struct exchange *exchange, const char *data, size_t len)
{
    struct plain_request *request = exchange->state;

    if (exchange->is_failed || !is_put(exchange)) {
        client_connection_extend(exchange->client, len);
        return exchange_discard(exchange, len);
    }
    /* A connection that is shut down for reading still delivers what the client sends. */
    if (exchange_is_stopped(exchange, &exchange->err)) {
        exchange->is_failed = true;
        return exchange_discard(exchange, len);
    }
    patience_end(exchange, &request->patience, len);
    exchange->is_failed = file_call_send_data(request->files, data, len, &exchange->err) < 0;
    patience_begin(exchange, &request->patience);
    return MHD_YES;
}

static enum MHD_Result plain_answer(struct exchange *exchange)
{
    struct plain_request *request = exchange->state;
    const struct api *api = exchange->frontend->context;
    const struct download_spec spec = {
        .host = api->host,
        .caller = &exchange->caller,
        .sandbox = request->query.sandbox,
        .path = request->query.path,
        .user = request->query.user,
    };

    if (is_put(exchange))
        return upload_answer(exchange, request);
    if (exchange->is_failed)
        return plain_fail(exchange, &exchange->err, 0, NULL);
    return download_answer(exchange, &spec);
}

static void plain_close(struct exchange *exchange)
{
    struct plain_request *request = exchange->state;

    file_call_close(request->files);
    sandbox_unref(request->sandbox);
    free(request);
}

const struct frontend_ops plain_frontend = {
    .name = "files",
    .owns = plain_owns,
    .has_sessions = true,
    .begin = plain_begin,
    .receive = plain_receive,
    .answer = plain_answer,
    .close = plain_close,
};
