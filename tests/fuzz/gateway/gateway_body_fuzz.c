// SPDX-License-Identifier: Apache-2.0
/* Bodies of requests and replies of models. The first byte says how large the parts are in which
 * they come, which must not change what is read. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/request.h"
#include "gateway/usage.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static bool reply_read(const char *data, size_t len, size_t part, bool is_stream,
                       struct token_counts *ret)
{
    struct usage_reader reader;

    usage_reader_init(&reader, is_stream);
    for (size_t i = 0; i < len; i += part)
        usage_reader_feed(&reader, data + i, part < len - i ? part : len - i);
    return usage_reader_finish(&reader, ret);
}

static void reply_compare(const char *data, size_t len, size_t part, bool is_stream)
{
    struct token_counts whole, parts;
    bool is_known = reply_read(data, len, len + 1, is_stream, &whole);

    if (reply_read(data, len, part, is_stream, &parts) != is_known ||
        memcmp(&whole, &parts, sizeof(whole)) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *data = (const char *)bytes + 1;
    struct request_body body;
    size_t part = size > 0 ? (size_t)bytes[0] + 1 : 1, len = size > 0 ? size - 1 : 0;

    reply_compare(data, len, part, false);
    reply_compare(data, len, part, true);
    request_body_init(&body, CALL_MESSAGES);
    for (size_t i = 0; i < len; i += part)
        if (request_body_feed(&body, data + i, part < len - i ? part : len - i) < 0)
            return 0;
    if (request_body_is_whole(&body) &&
        (body.model_end > len || data[body.model_start] != '"' || data[body.model_end - 1] != '"'))
        abort();
    return 0;
}
