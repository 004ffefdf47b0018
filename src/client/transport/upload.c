// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/xalloc.h"
#include "client/error.h"
#include "client/transport/handle.h"
#include "client/transport/link.h"
#include "holt.h"
#include "wire/envelope.h"

enum { WAITING_MAX = 2 * (ENVELOPE_HEADER_SIZE + ENVELOPE_PAYLOAD_MAX) };

struct holt_upload {
    struct connection *connection;
    struct buf message; /* with its envelope */
    bool is_cut;        /* the upload is incomplete */
    bool is_over;
};

int holt_upload_open(struct holt *holt, const char *method, int64_t deadline,
                     struct holt_upload **ret, struct holt_error *error)
{
    struct http_request request = {
        .content_type = "application/connect+json",
        .is_chunked = true,
        .reply_max = WAITING_MAX,
        .deadline = deadline,
    };
    struct connection *connection;
    struct holt_upload *upload;

    if (handle_send(holt, method, &request, &connection, error) < 0)
        return -1;
    upload = xcalloc(1, sizeof(*upload));
    upload->connection = connection;
    upload->message.max = ENVELOPE_HEADER_SIZE + ENVELOPE_PAYLOAD_MAX;
    *ret = upload;
    return 0;
}

/* A reply before the end of the upload is always an error. */
static bool has_answer(const struct holt_upload *upload)
{
    return !link_is_quiet(upload->connection->http.link);
}

int holt_upload_send(struct holt_upload *upload, const char *message, size_t len,
                     struct holt_error *error)
{
    if (upload->is_over)
        return error_set(error, "failed_precondition", "the upload is over");
    buf_clear(&upload->message);
    if (envelope_add(&upload->message, message, len) < 0)
        return error_set(error, "invalid_argument", "the message is longer than %d bytes",
                         ENVELOPE_PAYLOAD_MAX);
    upload->is_cut = upload->is_cut || has_answer(upload);
    if (upload->is_cut)
        return 0;
    return http_send_chunk(&upload->connection->http, upload->message.data, upload->message.len,
                           error);
}

/* Parses the body of the reply: one message and the end, or an end with an error. */
static int read_answer(const struct buf *body, char **ret_reply, struct holt_error *error)
{
    const char *data = body->data;
    size_t len = body->len;
    struct envelope message = { .is_end = true }, end;
    ssize_t size = data ? envelope_parse(data, len, &message) : 0;

    if (size > 0 && message.is_end) {
        if (error_from_end(error, message.payload, message.len) < 0)
            return -1;
        return error_set(error, "internal", "the daemon ended the upload without a reply");
    }
    if (size <= 0 || envelope_parse(data + size, len - (size_t)size, &end) <= 0 || !end.is_end)
        return error_set(error, "internal", "cannot read the daemon's reply to the upload");
    if (error_from_end(error, end.payload, end.len) < 0)
        return -1;
    *ret_reply = strndup(message.payload, message.len);
    return *ret_reply ? 0 : error_set(error, "resource_exhausted", "no memory for the reply");
}

static int finish(struct holt_upload *upload, char **ret_reply, struct holt_error *error)
{
    struct http *http = &upload->connection->http;
    unsigned status;

    if ((!upload->is_cut && http_send_chunk(http, NULL, 0, error) < 0) ||
        http_read_head(http, &status, error) < 0 ||
        connection_read_all(upload->connection, error) < 0)
        return -1;
    http->can_reuse = http->can_reuse && !upload->is_cut;
    if (status != HTTP_STATUS_OK) {
        error_from_reply(error, status, http->body.data, http->body.len);
        return -1;
    }
    return read_answer(&http->body, ret_reply, error);
}

int holt_upload_finish(struct holt_upload *upload, char **ret_reply, struct holt_error *error)
{
    if (upload->is_over)
        return error_set(error, "failed_precondition", "the upload is over");
    upload->is_over = true;
    if (finish(upload, ret_reply, error) == 0)
        return 0;
    connection_failed(upload->connection, error);
    return -1;
}

void holt_upload_close(struct holt_upload *upload)
{
    if (!upload)
        return;
    handle_give(upload->connection);
    buf_done(&upload->message);
    free(upload);
}
