// SPDX-License-Identifier: Apache-2.0
#include "wire/frame.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/buf.h"

long frame_parse(const void *data, size_t len, size_t payload_max, struct frame *ret)
{
    const char *bytes = data;
    struct reader header = { .next = bytes, .left = FRAME_HEADER_SIZE, .ok = true };
    uint32_t size;
    uint16_t type;

    if (len < FRAME_HEADER_SIZE)
        return 0;
    size = get_u32(&header);
    type = get_u16(&header);
    if (size > payload_max || type == FRAME_NONE || type >= FRAME_TYPES)
        return -EPROTO;
    ret->type = (enum frame_type)type;
    ret->fds = get_u16(&header);
    ret->process = get_u32(&header);
    if (ret->fds > FRAME_FDS_MAX)
        return -EPROTO;
    if (len - FRAME_HEADER_SIZE < size)
        return 0;
    ret->payload = bytes + FRAME_HEADER_SIZE;
    ret->size = size;
    return FRAME_HEADER_SIZE + (long)size;
}

size_t frame_begin(struct buf *out, enum frame_type type, uint32_t process, uint16_t fds)
{
    size_t start = out->len;

    if (buf_reserve(out, FRAME_HEADER_SIZE) == 0)
        (void)(put_u32(out, 0) && put_u16(out, (uint16_t)type) && put_u16(out, fds) &&
               put_u32(out, process));
    return start;
}

int frame_end(struct buf *out, size_t start, bool is_whole)
{
    uint32_t size;

    if (!is_whole || out->len < start + FRAME_HEADER_SIZE) {
        out->len = start;
        return -ENOBUFS;
    }
    size = htole32((uint32_t)(out->len - start - FRAME_HEADER_SIZE));
    memcpy(out->data + start, &size, sizeof(size));
    return 0;
}

bool put_u8(struct buf *out, uint8_t value)
{
    return buf_add(out, &value, sizeof(value)) == 0;
}

bool put_u16(struct buf *out, uint16_t value)
{
    value = htole16(value);
    return buf_add(out, &value, sizeof(value)) == 0;
}

bool put_u32(struct buf *out, uint32_t value)
{
    value = htole32(value);
    return buf_add(out, &value, sizeof(value)) == 0;
}

bool put_u64(struct buf *out, uint64_t value)
{
    value = htole64(value);
    return buf_add(out, &value, sizeof(value)) == 0;
}

bool put_bytes(struct buf *out, const void *data, size_t len)
{
    return len <= UINT32_MAX && put_u32(out, (uint32_t)len) && buf_add(out, data, len) == 0;
}

bool put_text(struct buf *out, const char *text)
{
    return put_bytes(out, text, strlen(text) + 1);
}

struct reader reader_of(const struct frame *frame)
{
    return (struct reader){ .next = frame->payload, .left = frame->size, .ok = true };
}

/* Returns the next len bytes, or NULL, after which the reader fails. */
static const char *reader_take(struct reader *reader, size_t len)
{
    const char *bytes = reader->next;

    if (!reader->ok || reader->left < len) {
        reader->ok = false;
        return NULL;
    }
    reader->next += len;
    reader->left -= len;
    return bytes;
}

uint8_t get_u8(struct reader *reader)
{
    const char *bytes = reader_take(reader, 1);

    return bytes ? (uint8_t)*bytes : 0;
}

uint16_t get_u16(struct reader *reader)
{
    const char *bytes = reader_take(reader, sizeof(uint16_t));
    uint16_t value = 0;

    if (bytes)
        memcpy(&value, bytes, sizeof(value));
    return le16toh(value);
}

uint32_t get_u32(struct reader *reader)
{
    const char *bytes = reader_take(reader, sizeof(uint32_t));
    uint32_t value = 0;

    if (bytes)
        memcpy(&value, bytes, sizeof(value));
    return le32toh(value);
}

uint64_t get_u64(struct reader *reader)
{
    const char *bytes = reader_take(reader, sizeof(uint64_t));
    uint64_t value = 0;

    if (bytes)
        memcpy(&value, bytes, sizeof(value));
    return le64toh(value);
}

const char *get_bytes(struct reader *reader, size_t *ret_len)
{
    uint32_t len = get_u32(reader);
    const char *bytes = reader_take(reader, len);

    *ret_len = bytes ? len : 0;
    return bytes;
}

const char *get_text(struct reader *reader)
{
    size_t len;
    const char *text = get_bytes(reader, &len);

    if (!text || len == 0 || memchr(text, '\0', len) != text + len - 1) {
        reader->ok = false;
        return "";
    }
    return text;
}

bool reader_is_done(const struct reader *reader)
{
    return reader->ok && reader->left == 0;
}
