// SPDX-License-Identifier: Apache-2.0
#include "ssh/wire.h"

#include <string.h>

#include "base/buf.h"

struct ssh_reader ssh_reader_of(const void *data, size_t len)
{
    return (struct ssh_reader){ .next = data, .left = len, .ok = true };
}

static const unsigned char *reader_take(struct ssh_reader *reader, size_t len)
{
    const unsigned char *taken = reader->next;

    if (!reader->ok || reader->left < len) {
        reader->ok = false;
        return NULL;
    }
    reader->next += len;
    reader->left -= len;
    return taken;
}

uint8_t ssh_get_u8(struct ssh_reader *reader)
{
    const unsigned char *byte = reader_take(reader, 1);

    return byte ? *byte : 0;
}

uint32_t ssh_get_u32(struct ssh_reader *reader)
{
    const unsigned char *b = reader_take(reader, 4);

    return b ? (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3] : 0;
}

struct ssh_bytes ssh_get_string(struct ssh_reader *reader)
{
    uint32_t len = ssh_get_u32(reader);
    const unsigned char *data = reader_take(reader, len);

    return (struct ssh_bytes){ .data = data, .len = data ? len : 0 };
}

struct ssh_bytes ssh_get_number(struct ssh_reader *reader)
{
    struct ssh_bytes number = ssh_get_string(reader);

    if (number.len > 0 && (number.data[0] & 0x80))
        reader->ok = false;
    if (number.len > 0 && number.data[0] == 0) {
        number.data++;
        number.len--;
    }
    return reader->ok ? number : (struct ssh_bytes){ .data = NULL };
}

bool ssh_reader_is_done(const struct ssh_reader *reader)
{
    return reader->ok && reader->left == 0;
}

bool ssh_bytes_equal(struct ssh_bytes one, struct ssh_bytes other)
{
    return one.len == other.len && (one.len == 0 || memcmp(one.data, other.data, one.len) == 0);
}

bool ssh_bytes_are(struct ssh_bytes bytes, const char *text)
{
    return bytes.data && bytes.len == strlen(text) && memcmp(bytes.data, text, bytes.len) == 0;
}

bool ssh_put_u8(struct buf *out, uint8_t value)
{
    return buf_add(out, &value, 1) == 0;
}

bool ssh_put_u32(struct buf *out, uint32_t value)
{
    const unsigned char bytes[4] = { (unsigned char)(value >> 24), (unsigned char)(value >> 16),
                                     (unsigned char)(value >> 8), (unsigned char)value };

    return buf_add(out, bytes, sizeof(bytes)) == 0;
}

bool ssh_put_string(struct buf *out, const void *data, size_t len)
{
    return len <= UINT32_MAX && ssh_put_u32(out, (uint32_t)len) && buf_add(out, data, len) == 0;
}

bool ssh_put_text(struct buf *out, const char *text)
{
    return ssh_put_string(out, text, strlen(text));
}

bool ssh_put_number(struct buf *out, const unsigned char *data, size_t len)
{
    bool needs_zero;

    while (len > 0 && *data == 0) {
        data++;
        len--;
    }
    needs_zero = len > 0 && (*data & 0x80);
    return len < UINT32_MAX && ssh_put_u32(out, (uint32_t)(len + needs_zero)) &&
           (!needs_zero || ssh_put_u8(out, 0)) && buf_add(out, data, len) == 0;
}
