// SPDX-License-Identifier: Apache-2.0
#include "egress/http/websocket.h"

#include <stdbool.h>
#include <string.h>

enum {
    START = 2, /* bytes of a head that say how long it is */
    MASKED = 0x80,
    LENGTH = 0x7f,
    LENGTH_16 = 126,
    LENGTH_64 = 127,
    MASK_BYTES = 4,
};

static size_t length_bytes(const struct websocket_reader *reader)
{
    unsigned length = reader->head[1] & LENGTH;

    return length == LENGTH_16 ? 2 : length == LENGTH_64 ? 8 : 0;
}

static bool is_masked(const struct websocket_reader *reader)
{
    return (reader->head[1] & MASKED) != 0;
}

static size_t head_size(const struct websocket_reader *reader)
{
    return reader->head_len < START
               ? START
               : START + length_bytes(reader) + (is_masked(reader) ? MASK_BYTES : 0);
}

static void payload_begin(struct websocket_reader *reader)
{
    size_t bytes = length_bytes(reader);

    reader->left = bytes == 0 ? reader->head[1] & LENGTH : 0;
    for (size_t i = 0; i < bytes; i++)
        reader->left = reader->left << 8 | reader->head[START + i];
    reader->at = 0;
}

/* Takes a byte of the payload, and begins the next frame behind the last one. */
static char payload_take(struct websocket_reader *reader, char byte)
{
    const uint8_t *mask = reader->head + START + length_bytes(reader);

    if (is_masked(reader))
        byte = (char)((uint8_t)byte ^ mask[reader->at++ % MASK_BYTES]);
    if (--reader->left == 0)
        reader->head_len = 0;
    return byte;
}

size_t websocket_read(struct websocket_reader *reader, const char *data, size_t len, char *out)
{
    size_t written = 0;

    for (size_t i = 0; i < len; i++) {
        if (reader->left > 0) {
            out[written++] = payload_take(reader, data[i]);
            continue;
        }
        reader->head[reader->head_len++] = (uint8_t)data[i];
        if (reader->head_len < head_size(reader))
            continue;
        payload_begin(reader);
        if (reader->left == 0)
            reader->head_len = 0;
    }
    return written;
}
