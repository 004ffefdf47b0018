// SPDX-License-Identifier: Apache-2.0
#include "client/message/messages.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "client/error.h"
#include "client/message/methods.h"
#include "client/message/request.h"
#include "client/message/result.h"
#include "holt.h"

static int message_take(const struct messages_call *call, const char *text, size_t len,
                        struct holt_error *error)
{
    cleanup_result void *result = NULL;
    const void *message;
    json_t *json;
    struct err err;

    if (json_parse_with_nul(text, len, &json, &err) < 0)
        return error_set(error, "internal", "cannot read the reply of the daemon: %s", err.msg);
    result = result_new(call->size, json);
    message = result_decode(result, call->method->reply, json, error);
    return message ? call->each(call->context, &result, message, error) : -1;
}

static int stream_follow(struct holt_stream *stream, const struct messages_call *call,
                         struct holt_error *error)
{
    const char *text;
    size_t len;
    int r;

    while ((r = holt_stream_next(stream, &text, &len, error)) > 0)
        if (message_take(call, text, len, error) < 0)
            return -1;
    return r;
}

int messages_follow(struct holt *holt, const struct messages_call *call, struct holt_error *error)
{
    cleanup_with(buf_done) struct buf request = BUF_INIT(REQUEST_BYTES_MAX);
    struct holt_stream *stream;
    int r;

    if (request_encode(call->method->request, call->request, &request, error) < 0 ||
        holt_stream_open(holt, call->method->path, request.data, call->deadline, &stream, error) <
            0)
        return -1;
    r = stream_follow(stream, call, error);
    holt_stream_close(stream);
    return r;
}
