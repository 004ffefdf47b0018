// SPDX-License-Identifier: Apache-2.0
#include "client/transport/messages.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "client/error.h"
#include "holt.h"

static int take(const struct messages_call *call, const char *text, size_t len,
                struct holt_error *error)
{
    struct reading reading = { .is_wrong = false };
    json_t *message;
    struct err err;
    int r;

    if (json_parse_with_nul(text, len, &message, &err) < 0)
        return error_set(error, "internal", "the daemon's answer cannot be read: %s", err.msg);
    reading.result = result_new(call->size, message);
    r = call->each(call->context, &reading, message, error);
    holt_free(reading.result);
    return r < 0 ? -1 : reading_end(&reading, error);
}

static int follow(struct holt_stream *stream, const struct messages_call *call,
                  struct holt_error *error)
{
    const char *text;
    size_t len;
    int r;

    while ((r = holt_stream_next(stream, &text, &len, error)) > 0)
        if (take(call, text, len, error) < 0)
            return -1;
    return r;
}

int messages_follow(struct holt *holt, const struct messages_call *call, struct holt_error *error)
{
    cleanup_json json_t *request = call->request;
    cleanup_free char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
    struct holt_stream *stream;
    int r;

    if (!text)
        return error_set(error, "invalid_argument", "an argument is missing or not UTF-8");
    if (holt_stream_open(holt, call->method, text, call->deadline, &stream, error) < 0)
        return -1;
    r = follow(stream, call, error);
    holt_stream_close(stream);
    return r;
}
