// SPDX-License-Identifier: Apache-2.0
/* Bundles travel as the bodies of plain requests. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/sandbox_result.h"
#include "client/transport/handle.h"
#include "client/transport/link.h"
#include "holt.h"

enum { BUNDLE_PATH_MAX = 4096, BUNDLE_REPLY_MAX = 1 << 20, PIECE = 256 * 1024 };

#define BUNDLE_PATH "holt.v1/bundle"

/* Adds a parameter to the path (NULL: none). */
static int parameter_add(struct buf *path, char before, const char *name, const char *value)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    int r = value ? buf_printf(path, "%c%s=", before, name) : 0;

    for (; r == 0 && value && *value; value++)
        r = strchr(plain, *value) ? buf_add(path, value, 1)
                                  : buf_printf(path, "%%%02X", (unsigned char)*value);
    return r;
}

/* Reads the whole reply, which is an error. */
static int reply_fail(struct connection *connection, unsigned status, struct holt_error *error)
{
    const struct buf *body = &connection->http.body;

    if (connection_read_all(connection, error) == 0)
        error_from_reply(error, status, body->data, body->len);
    return -1;
}

static int export_follow(struct connection *connection, const struct holt_export_options *options,
                         const struct http_wanted *length, struct holt_error *error)
{
    struct buf *body = &connection->http.body;
    uint64_t total = 0;
    unsigned status;
    int r;

    if (http_read_head(&connection->http, &status, error) < 0)
        return -1;
    if (status != HTTP_STATUS_OK)
        return reply_fail(connection, status, error);
    if (options->on_size && parse_u64(length->value, &total) == 0)
        options->on_size(options->context, total);
    do {
        r = http_read_body(&connection->http, error);
        if (r >= 0 && body->len > 0 &&
            options->on_data(options->context, body->data, body->len) != 0)
            return error_set(error, "canceled", "the export was canceled");
        buf_clear(body);
    } while (r > 0);
    return r;
}

int holt_export(struct holt *holt, const char *sandbox, const struct holt_export_options *given,
                int64_t deadline, struct holt_error *error)
{
    cleanup_with(buf_done) struct buf path = BUF_INIT(BUNDLE_PATH_MAX);
    struct holt_export_options options = HOLT_INIT(holt_export_options);
    struct http_wanted length = { .name = "Content-Length" };
    struct http_request request = {
        .verb = "GET",
        .content_type = "application/json",
        .reply_max = BUNDLE_REPLY_MAX,
        .wanted = &length,
        .deadline = deadline,
    };
    struct connection *connection;
    int r;

    if (options_take(&options, sizeof(options), given, error) < 0)
        return -1;
    if (!sandbox || !options.on_data)
        return error_set(error, "invalid_argument", "an export needs a sandbox and on_data");
    if (buf_add_str(&path, BUNDLE_PATH) < 0 || parameter_add(&path, '?', "sandbox", sandbox) < 0 ||
        parameter_add(&path, '&', "snapshot", options.snapshot) < 0)
        return error_set(error, "invalid_argument", "the names are too long");
    if (handle_send(holt, path.data, &request, &connection, error) < 0)
        return -1;
    r = export_follow(connection, &options, &length, error);
    if (r < 0)
        connection_failed(connection, error);
    handle_give(connection);
    return r;
}

/* Sends the archive until its end, or until the daemon answers, which it does early only to refuse
 * it. */
static int import_send(struct connection *connection,
                       const struct holt_import_bundle_options *options, struct holt_error *error)
{
    cleanup_free char *piece = xcalloc(1, PIECE);
    ptrdiff_t n;

    while (link_is_quiet(connection->http.link)) {
        n = options->read(options->context, piece, PIECE);
        if (n < 0)
            return error_set(error, "canceled", "the import was canceled");
        if (http_send_chunk(&connection->http, piece, (size_t)n, error) < 0)
            return -1;
        if (n == 0)
            return 0;
    }
    connection->http.can_reuse = false;
    return 0;
}

static int import_follow(struct connection *connection,
                         const struct holt_import_bundle_options *options, json_t **ret,
                         struct holt_error *error)
{
    const struct buf *body = &connection->http.body;
    unsigned status;

    if (import_send(connection, options, error) < 0 ||
        http_read_head(&connection->http, &status, error) < 0)
        return -1;
    if (status != HTTP_STATUS_OK)
        return reply_fail(connection, status, error);
    if (connection_read_all(connection, error) < 0)
        return -1;
    *ret = json_loadb(body->data ? body->data : "", body->len, 0, NULL);
    return *ret ? 0 : error_set(error, "internal", "the reply of the daemon is not JSON");
}

static int import_result(json_t *reply, struct holt_sandbox **ret, struct holt_error *error)
{
    cleanup_result void *result = result_new(sizeof(**ret), reply);
    const struct msg_get_sandbox_response *message =
        result_decode(result, &msg_get_sandbox_response_schema, reply, error);

    if (!message || sandbox_result_fill(result, message->sandbox, error) < 0)
        return -1;
    if (ret)
        *ret = TAKE_PTR(result);
    return 0;
}

int holt_import_bundle(struct holt *holt, const struct holt_import_bundle_options *given,
                       int64_t deadline, struct holt_sandbox **ret, struct holt_error *error)
{
    cleanup_with(buf_done) struct buf path = BUF_INIT(BUNDLE_PATH_MAX);
    struct holt_import_bundle_options options = HOLT_INIT(holt_import_bundle_options);
    struct http_request request = {
        .verb = "PUT",
        .content_type = "application/x-tar",
        .is_chunked = true,
        .reply_max = BUNDLE_REPLY_MAX,
        .deadline = deadline,
    };
    struct connection *connection;
    json_t *reply = NULL;
    int r;

    if (options_take(&options, sizeof(options), given, error) < 0)
        return -1;
    if (!options.read)
        return error_set(error, "invalid_argument", "an import needs a function that reads");
    if (buf_add_str(&path, BUNDLE_PATH) < 0 || parameter_add(&path, '?', "name", options.name) < 0)
        return error_set(error, "invalid_argument", "the name is too long");
    if (handle_send(holt, path.data, &request, &connection, error) < 0)
        return -1;
    r = import_follow(connection, &options, &reply, error);
    if (r < 0)
        connection_failed(connection, error);
    handle_give(connection);
    return r < 0 ? r : import_result(reply, ret, error);
}
