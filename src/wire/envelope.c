// SPDX-License-Identifier: Apache-2.0
#include "wire/envelope.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "wire/error.h"

enum {
    FLAG_MESSAGE = 0,
    FLAG_END = 2,
};

static int envelope_append(struct buf *out, unsigned char flags, const void *payload, size_t len)
{
    const unsigned char header[ENVELOPE_HEADER_SIZE] = {
        flags,
        (unsigned char)(len >> 24),
        (unsigned char)(len >> 16),
        (unsigned char)(len >> 8),
        (unsigned char)len,
    };
    int r;

    r = buf_reserve(out, sizeof(header) + len);
    if (r < 0)
        return r;
    r = buf_add(out, header, sizeof(header));
    return r < 0 ? r : buf_add(out, payload, len);
}

int envelope_add(struct buf *out, const void *payload, size_t len)
{
    return len > ENVELOPE_PAYLOAD_MAX ? -EMSGSIZE
                                      : envelope_append(out, FLAG_MESSAGE, payload, len);
}

int envelope_add_large(struct buf *out, const void *payload, size_t len)
{
    return len > ENVELOPE_LARGE_MAX ? -EMSGSIZE : envelope_append(out, FLAG_MESSAGE, payload, len);
}

int envelope_add_end(struct buf *out, const struct err *err)
{
    cleanup_with(buf_done) struct buf payload = BUF_INIT(ENVELOPE_PAYLOAD_MAX);
    cleanup_json json_t *end = NULL;
    int r;

    if (!err)
        return envelope_append(out, FLAG_END, "{}", 2);
    end = json_pack("{s:o}", "error", error_object(err));
    if (!end)
        return -ENOMEM;
    r = json_write(end, &payload);
    return r < 0 ? r : envelope_append(out, FLAG_END, payload.data, payload.len);
}

ssize_t envelope_parse(const void *data, size_t len, struct envelope *ret)
{
    return envelope_parse_up_to(data, len, ENVELOPE_PAYLOAD_MAX, ret);
}

ssize_t envelope_parse_up_to(const void *data, size_t len, size_t max, struct envelope *ret)
{
    const unsigned char *bytes = data;
    size_t payload;

    if (len > 0 && bytes[0] != FLAG_MESSAGE && bytes[0] != FLAG_END)
        return -EPROTO;
    if (len < ENVELOPE_HEADER_SIZE)
        return 0;
    payload = (size_t)bytes[1] << 24 | (size_t)bytes[2] << 16 | (size_t)bytes[3] << 8 | bytes[4];
    if (payload > max)
        return -EMSGSIZE;
    if (len - ENVELOPE_HEADER_SIZE < payload)
        return 0;
    *ret = (struct envelope){
        .is_end = bytes[0] == FLAG_END,
        .payload = (const char *)bytes + ENVELOPE_HEADER_SIZE,
        .len = payload,
    };
    return (ssize_t)(ENVELOPE_HEADER_SIZE + payload);
}
