// SPDX-License-Identifier: Apache-2.0
/* An export is written, and an import unpacked, by a thread of its own: the archive passes through
 * a pipe between it and the thread of the connection, and nothing is kept on disk for the other's
 * pace. */
#include "api/plain/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/frontend.h"
#include "api/message/messages.h"
#include "api/plain/patience.h"
#include "api/plain/reply.h"
#include "api/service.h"
#include "base/access/caller.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "host/bundle/export.h"
#include "host/bundle/import.h"
#include "host/sandbox/sandbox.h"
#include "http/connect.h"
#include "http/exchange.h"
#include "http/limits.h"
#include "http/reply.h"

#define BUNDLE_PATH "/holt.v1/bundle"

enum { BLOCK = 256 * 1024, PIPE_BYTES = 1 << 20, REPLY_BYTES = 256 * 1024 };

static const struct refusal refuse_bundle_verb = {
    405, ERR_UNSUPPORTED, BUNDLE_PATH " takes GET and PUT", "Allow", "GET, PUT", false,
};

struct bundle_request {
    struct host *host;
    struct caller caller;
    const char *sandbox, *snapshot, *name; /* of the query; NULL: absent */
    const char *wrong;                     /* a parameter that does not exist; NULL: none */
    struct patience patience;

    int pipe[2];
    int archive_fd; /* of an import: the end of the pipe that is the thread's */
    struct thread thread;
    int result; /* of the thread, with err */
    struct err err;

    struct sandbox *source; /* of an export */
    struct export *export;
    struct bundle_spool spool; /* of an import */
};

static bool is_put(const struct exchange *exchange)
{
    return strcmp(exchange->verb, MHD_HTTP_METHOD_PUT) == 0;
}

static bool bundle_owns(const char *path, const char *verb)
{
    (void)verb;
    return strcmp(path, BUNDLE_PATH) == 0;
}

/* --- the query -------------------------------------------------------------------------------- */

/* Returns whether there is such a parameter. */
static bool parameter_set(struct bundle_request *request, const char *name, const char *value)
{
    if (strcmp(name, "sandbox") == 0)
        request->sandbox = value;
    else if (strcmp(name, "snapshot") == 0)
        request->snapshot = value;
    else if (strcmp(name, "name") == 0)
        request->name = value;
    else
        return false;
    return true;
}

/* The parameters are libmicrohttpd's. */
// NOLINTNEXTLINE(readability-function-size)
static enum MHD_Result query_field(void *context, enum MHD_ValueKind kind, const char *name,
                                   size_t name_len, const char *value, size_t value_len)
{
    struct bundle_request *request = context;

    (void)kind;
    if (!value || strlen(name) != name_len || strlen(value) != value_len ||
        !parameter_set(request, name, value))
        request->wrong = name;
    return request->wrong ? MHD_NO : MHD_YES;
}

static int query_read(const struct exchange *exchange, struct bundle_request *request,
                      struct err *err)
{
    bool is_import = is_put(exchange);

    (void)MHD_get_connection_values_n(exchange->connection, MHD_GET_ARGUMENT_KIND, query_field,
                                      request);
    if (request->wrong)
        return err_set(err, ERR_INVALID, "query parameter '%.40s' is not valid", request->wrong);
    if (is_import && (request->sandbox || request->snapshot))
        return err_set(err, ERR_INVALID, "an import takes name=NAME only");
    if (!is_import && (!request->sandbox || request->name))
        return err_set(err, ERR_INVALID, "an export needs sandbox=ID, and takes snapshot=NAME");
    if (!caller_may_change(&exchange->caller))
        return err_set(err, ERR_DENIED, "this token is read-only");
    return 0;
}

/* --- export ----------------------------------------------------------------------------------- */

static int pipe_write(void *context, const void *data, size_t len)
{
    const struct bundle_request *request = context;

    return write_all(request->pipe[1], data, len);
}

static void export_main(void *context)
{
    struct bundle_request *request = context;

    request->result = export_write(request->export, pipe_write, request, &request->err);
    request->pipe[1] = fd_close(request->pipe[1]);
}

/* Ends the thread, which fails at its next write or has ended, and then the export. */
static void export_stop(struct bundle_request *request)
{
    request->pipe[0] = fd_close(request->pipe[0]);
    thread_join(&request->thread);
    export_end(TAKE_PTR(request->export));
    sandbox_unref(TAKE_PTR(request->source));
}

/* A bundle that ends early, as its files changed or its token was revoked, ends as a broken
 * connection. */
static ssize_t export_read(void *context, uint64_t position, char *data, size_t size)
{
    const struct exchange *exchange = context;
    const struct bundle_request *request = exchange->state;
    struct err ignored;
    ssize_t n;

    (void)position;
    client_connection_allow(exchange->client, CONNECTION_IDLE_MS);
    if (exchange_is_stopped(exchange, &ignored))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    do
        n = read(request->pipe[0], data, size);
    while (n < 0 && errno == EINTR);
    return n > 0 ? n : MHD_CONTENT_READER_END_WITH_ERROR;
}

static int pipe_open(struct bundle_request *request, struct err *err)
{
    if (pipe2(request->pipe, O_CLOEXEC) < 0)
        return err_sys(err, -errno, "make a pipe");
    (void)fcntl(request->pipe[0], F_SETPIPE_SZ, PIPE_BYTES);
    return 0;
}

static int export_start(struct bundle_request *request, struct err *err)
{
    int r = sandbox_find(request->host, &request->caller, request->sandbox, &request->source, err);

    if (r == 0)
        r = export_begin(request->source, request->snapshot, &request->export, err);
    if (r == 0)
        r = pipe_open(request, err);
    if (r < 0)
        return r;
    r = thread_start(&request->thread, "holt-export", export_main, request);
    return r < 0 ? err_sys(err, r, "start the export") : 0;
}

static enum MHD_Result export_answer(struct exchange *exchange, struct bundle_request *request)
{
    struct MHD_Response *response;
    enum MHD_Result result;

    client_connection_allow(exchange->client, CONNECTION_FOREVER);
    if (export_start(request, &exchange->err) < 0)
        return plain_fail(exchange, &exchange->err, 0, NULL);
    response = MHD_create_response_from_callback(export_size(request->export), BLOCK, export_read,
                                                 exchange, NULL);
    if (!response)
        return MHD_NO;
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/x-tar");
    plain_headers_add(response, "");
    result = MHD_queue_response(exchange->connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

/* --- import ----------------------------------------------------------------------------------- */

static void import_main(void *context)
{
    struct bundle_request *request = context;

    request->result =
        import_receive(request->host, request->archive_fd, &request->spool, &request->err);
}

static int import_start(struct bundle_request *request, struct err *err)
{
    int r = pipe_open(request, err);

    if (r < 0)
        return r;
    request->archive_fd = TAKE_FD(request->pipe[0]);
    r = thread_start(&request->thread, "holt-import", import_main, request);
    if (r < 0)
        (void)fd_close(request->archive_fd);
    return r < 0 ? err_sys(err, r, "start the import") : 0;
}

/* Waits for the thread, which sees the end of the archive, complete or not. */
static int import_wait(struct bundle_request *request, struct err *err)
{
    request->pipe[1] = fd_close(request->pipe[1]);
    thread_join(&request->thread);
    if (request->result < 0)
        *err = request->err;
    return request->result;
}

static int import_reply(struct bundle_request *request, struct sandbox *sandbox, struct buf *body)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(REPLY_BYTES);
    const struct call call = { .host = request->host, .caller = &request->caller, .arena = &arena };
    struct sandbox_info info;
    struct msg_sandbox message;
    int r;

    sandbox_get_info(sandbox, false, &info);
    message = sandbox_message(&call, &info, false);
    r = schema_encode(MESSAGE(msg_get_sandbox_response, .sandbox = &message), ENCODE_ALL, body);
    sandbox_info_done(&info);
    return r;
}

static enum MHD_Result import_answer(struct exchange *exchange, struct bundle_request *request)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(buf_done) struct buf body = BUF_INIT(REPLY_BYTES);
    struct MHD_Response *response;
    const struct import_spec spec = { .name = request->name };
    enum MHD_Result result;
    int r;

    client_connection_allow(exchange->client, CONNECTION_FOREVER);
    r = import_wait(request, &exchange->err);
    if (r == 0 && exchange_is_stopped(exchange, &exchange->err))
        r = -ECANCELED;
    if (r == 0)
        r = import_sandbox(request->host, &request->caller, &request->spool, &spec, &sandbox,
                           &exchange->err);
    bundle_spool_done(&request->spool);
    if (r < 0)
        return plain_fail(exchange, &exchange->err, 0, NULL);
    if (import_reply(request, sandbox, &body) < 0)
        return MHD_NO;
    response = reply_response(&body, CONNECT_UNARY_TYPE);
    if (!response)
        return MHD_NO;
    plain_headers_add(response, "");
    result = MHD_queue_response(exchange->connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

/* --- requests --------------------------------------------------------------------------------- */

static enum MHD_Result bundle_begin(struct exchange *exchange)
{
    struct bundle_request *request = xcalloc(1, sizeof(*request));
    const struct api *api = exchange->frontend->context;
    int r;

    exchange->state = request;
    request->pipe[0] = request->pipe[1] = -EBADF;
    request->spool.fd = -EBADF;
    request->host = api->host;
    request->caller = exchange->caller;
    if (!is_put(exchange) && strcmp(exchange->verb, MHD_HTTP_METHOD_GET) != 0) {
        exchange->refusal = &refuse_bundle_verb;
        return MHD_YES;
    }
    caller_set_current(&exchange->caller);
    r = query_read(exchange, request, &exchange->err);
    if (r == 0 && is_put(exchange))
        r = import_start(request, &exchange->err);
    exchange->is_failed = r < 0;
    patience_start(exchange, &request->patience);
    return MHD_YES;
}

/* The thread closes the pipe when it fails; its error is the answer. */
static enum MHD_Result bundle_receive_part(struct exchange *exchange, const char *data, size_t len)
{
    struct bundle_request *request = exchange->state;

    if (exchange->is_failed || !is_put(exchange)) {
        client_connection_extend(exchange->client, len);
        return exchange_discard(exchange, len);
    }
    if (exchange_is_stopped(exchange, &exchange->err)) {
        exchange->is_failed = true;
        return exchange_discard(exchange, len);
    }
    patience_end(exchange, &request->patience, len);
    if (write_all(request->pipe[1], data, len) < 0)
        exchange->is_failed = import_wait(request, &exchange->err) < 0;
    patience_begin(exchange, &request->patience);
    return MHD_YES;
}

static enum MHD_Result bundle_answer(struct exchange *exchange)
{
    if (exchange->is_failed)
        return plain_fail(exchange, &exchange->err, 0, NULL);
    return is_put(exchange) ? import_answer(exchange, exchange->state)
                            : export_answer(exchange, exchange->state);
}

static void bundle_close(struct exchange *exchange)
{
    struct bundle_request *request = exchange->state;

    if (is_put(exchange))
        request->pipe[1] = fd_close(request->pipe[1]);
    export_stop(request);
    (void)fd_close(request->pipe[1]);
    bundle_spool_done(&request->spool);
    free(request);
}

const struct frontend_ops bundle_frontend = {
    .name = "bundles",
    .owns = bundle_owns,
    .has_sessions = true,
    .begin = bundle_begin,
    .receive = bundle_receive_part,
    .answer = bundle_answer,
    .close = bundle_close,
};
