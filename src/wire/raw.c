// SPDX-License-Identifier: Apache-2.0
#include "wire/raw.h"

#include <errno.h>

#include "base/buf.h"

/* Properties of each type: direction, maximum length, and whether it is delivered in pieces. */
static const struct raw_rule {
    bool is_to_daemon;
    bool is_data;
    size_t max;
} rules[RAW_TYPES] = {
    [RAW_STDOUT] = { .is_data = true, .max = RAW_DATA_MAX },
    [RAW_STDERR] = { .is_data = true, .max = RAW_DATA_MAX },
    [RAW_EVENT] = { .max = RAW_WHOLE_MAX },
    [RAW_END] = { .max = RAW_WHOLE_MAX },
    [RAW_STDIN] = { .is_to_daemon = true, .is_data = true, .max = RAW_DATA_MAX },
    [RAW_STDIN_EOF] = { .is_to_daemon = true },
    [RAW_MESSAGE] = { .is_to_daemon = true, .max = RAW_WHOLE_MAX },
};

/* Parses a complete header. Returns its type, or RAW_NONE if it is malformed. */
static enum raw_type header_parse(const struct raw_parser *parser, const unsigned char *header,
                                  size_t *ret_len)
{
    enum raw_type type = header[0] < RAW_TYPES ? header[0] : RAW_NONE;
    size_t len = (size_t)header[4] | (size_t)header[5] << 8 | (size_t)header[6] << 16 |
                 (size_t)header[7] << 24;

    if (type == RAW_NONE || rules[type].is_to_daemon != parser->is_daemon || header[1] ||
        header[2] || header[3] || len > rules[type].max ||
        (type == RAW_MESSAGE && !parser->is_upload))
        return RAW_NONE;
    *ret_len = len;
    return type;
}

static ssize_t data_next(struct raw_parser *parser, const char *data, size_t len,
                         struct raw_piece *ret)
{
    size_t part = parser->left < len ? parser->left : len;

    *ret = (struct raw_piece){ .type = parser->type, .data = data, .len = part };
    parser->left -= part;
    return (ssize_t)part;
}

ssize_t raw_next(struct raw_parser *parser, const void *data, size_t len, struct raw_piece *ret)
{
    const char *payload = (const char *)data + RAW_HEADER_SIZE;
    enum raw_type type;
    size_t size;

    if (parser->left > 0)
        return data_next(parser, data, len, ret);
    if (len < RAW_HEADER_SIZE)
        return 0;
    type = header_parse(parser, data, &size);
    if (type == RAW_NONE)
        return -EPROTO;
    len -= RAW_HEADER_SIZE;
    if (rules[type].is_data && (len > 0 || size == 0)) {
        parser->type = type;
        parser->left = size;
        return RAW_HEADER_SIZE + data_next(parser, payload, len, ret);
    }
    if (rules[type].is_data || len < size)
        return 0;
    *ret = (struct raw_piece){ .type = type, .data = payload, .len = size };
    return (ssize_t)(RAW_HEADER_SIZE + size);
}

void raw_header(unsigned char header[RAW_HEADER_SIZE], enum raw_type type, size_t len)
{
    header[0] = (unsigned char)type;
    header[1] = header[2] = header[3] = 0;
    for (int i = 0; i < 4; i++)
        header[4 + i] = (unsigned char)(len >> (8 * i));
}

int raw_add(struct buf *out, enum raw_type type, const void *payload, size_t len)
{
    unsigned char header[RAW_HEADER_SIZE];
    int r;

    if (len > rules[type].max)
        return -EMSGSIZE;
    r = buf_reserve(out, RAW_HEADER_SIZE + len);
    if (r < 0)
        return r;
    raw_header(header, type, len);
    r = buf_add(out, header, sizeof(header));
    return r < 0 || len == 0 ? r : buf_add(out, payload, len);
}
