// SPDX-License-Identifier: Apache-2.0
#include "egress/hello.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

enum {
    RECORD_HEADER = 5,
    RECORD_HANDSHAKE = 22,
    RECORD_MAX = 16384,
    HANDSHAKE_HEADER = 4,
    CLIENT_HELLO = 1,
    RANDOM_BYTES = 32,
    EXTENSION_NAME = 0,
    EXTENSION_ECH = 0xfe0d,
    NAME_HOST = 0,
};

/* Bytes that are read in order; after the first missing one everything is empty. */
struct bytes {
    const uint8_t *next;
    size_t left;
    bool is_short;
};

static const uint8_t *bytes_take(struct bytes *bytes, size_t len)
{
    const uint8_t *at = bytes->next;

    if (bytes->is_short || len > bytes->left) {
        bytes->is_short = true;
        bytes->left = 0;
        return NULL;
    }
    bytes->next += len;
    bytes->left -= len;
    return at;
}

static size_t number_take(struct bytes *bytes, size_t width)
{
    const uint8_t *at = bytes_take(bytes, width);
    size_t value = 0;

    for (size_t i = 0; at && i < width; i++)
        value = value << 8 | at[i];
    return value;
}

/* Takes a field that has its length, of `width` bytes, in front. */
static struct bytes field_take(struct bytes *bytes, size_t width)
{
    size_t len = number_take(bytes, width);
    const uint8_t *at = bytes_take(bytes, len);

    return (struct bytes){ .next = at, .left = at ? len : 0, .is_short = !at };
}

bool hello_is_tls(const void *data, size_t len)
{
    const uint8_t *bytes = data;

    return len > 0 && bytes[0] == RECORD_HANDSHAKE && (len < 2 || bytes[1] == 3);
}

static int name_parse(struct bytes extension, struct hello *ret)
{
    struct bytes list = field_take(&extension, 2), name;

    if (ret->name[0] || extension.left > 0 || number_take(&list, 1) != NAME_HOST)
        return -EBADMSG;
    name = field_take(&list, 2);
    if (name.is_short || list.left > 0 || name.left == 0 || name.left > HELLO_NAME_MAX)
        return -EBADMSG;
    for (size_t i = 0; i < name.left; i++)
        if (name.next[i] <= ' ' || name.next[i] >= 0x7f)
            return -EBADMSG;
    memcpy(ret->name, name.next, name.left);
    ret->name[name.left] = '\0';
    return 0;
}

static int body_parse(struct bytes body, struct hello *ret)
{
    struct bytes extensions;

    (void)number_take(&body, 2); /* version */
    (void)bytes_take(&body, RANDOM_BYTES);
    (void)field_take(&body, 1); /* session */
    (void)field_take(&body, 2); /* cipher suites */
    (void)field_take(&body, 1); /* compression */
    if (body.is_short)
        return -EBADMSG;
    if (body.left == 0)
        return 1;
    extensions = field_take(&body, 2);
    if (extensions.is_short || body.left > 0)
        return -EBADMSG;
    while (extensions.left > 0) {
        size_t type = number_take(&extensions, 2);
        struct bytes extension = field_take(&extensions, 2);

        if (extension.is_short || (type == EXTENSION_NAME && name_parse(extension, ret) < 0))
            return -EBADMSG;
        if (type == EXTENSION_ECH)
            ret->is_encrypted = true;
    }
    return 1;
}

/* Joins the payloads of the handshake records at the start of data. Returns their length or
 * -EBADMSG. */
static long records_join(const uint8_t *data, size_t len, uint8_t ret[HELLO_MAX])
{
    struct bytes input = { .next = data, .left = len };
    size_t joined = 0;

    while (input.left > 0) {
        const uint8_t *header;
        size_t size, part;

        if (input.left < RECORD_HEADER)
            break;
        header = bytes_take(&input, RECORD_HEADER);
        size = (size_t)header[3] << 8 | header[4];
        if (header[0] != RECORD_HANDSHAKE || header[1] != 3 || size == 0 || size > RECORD_MAX)
            return -EBADMSG;
        part = size < input.left ? size : input.left;
        if (joined + part > HELLO_MAX)
            return -EBADMSG;
        memcpy(ret + joined, bytes_take(&input, part), part);
        joined += part;
        if (joined >= HANDSHAKE_HEADER &&
            joined >= HANDSHAKE_HEADER + ((size_t)ret[1] << 16 | (size_t)ret[2] << 8 | ret[3]))
            break; /* what follows is not the hello */
    }
    return (long)joined;
}

int hello_parse(const void *data, size_t len, struct hello *ret)
{
    uint8_t joined[HELLO_MAX];
    struct bytes message = { .next = joined };
    long n = records_join(data, len, joined);
    size_t size;

    *ret = (struct hello){ .is_encrypted = false };
    if (n < 0)
        return (int)n;
    if (n < HANDSHAKE_HEADER)
        return n > 0 && joined[0] != CLIENT_HELLO ? -EBADMSG : 0;
    message.left = (size_t)n;
    if (number_take(&message, 1) != CLIENT_HELLO)
        return -EBADMSG;
    size = number_take(&message, 3);
    if (size > HELLO_MAX - HANDSHAKE_HEADER)
        return -EBADMSG;
    if (size > message.left)
        return 0;
    message.left = size;
    return body_parse(message, ret);
}
