// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "e2b/port/header.h"
#include "e2b/port/reply.h"

enum { BODY_MAX = 1 << 20, IS_HEAD = 1, CAN_UPGRADE = 2, PIECE_SHIFT = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_headers(const struct port_reply *reply)
{
    for (size_t i = 0; i < reply->header_count; i++) {
        const char *value = port_reply_value(reply, i);

        if (!port_header_is_name(port_reply_name(reply, i)))
            abort();
        for (; *value; value++)
            if ((unsigned char)*value < ' ' || *value == 0x7f)
                abort();
    }
}

/* Feeds a reply in pieces and then its end; returns whether it was refused. Each piece is an
 * allocation of its own, so that a read beyond its end is detected. */
static bool feed(struct port_reply *reply, const uint8_t *data, size_t size, size_t piece,
                 struct buf *body)
{
    bool is_refused = false;

    port_reply_init(reply);
    while (!is_refused && !reply->is_complete) {
        size_t len = size < piece ? size : piece;
        char *part = malloc(len > 0 ? len : 1);
        ssize_t n;

        if (!part)
            abort();
        memcpy(part, data, len);
        n = port_reply_feed(reply, part, len);
        is_refused = n < 0;
        if (n > (ssize_t)len || (n > 0 && buf_add(body, part, (size_t)n) < 0))
            abort();
        free(part);
        data += len;
        size -= len;
    }
    if (reply->has_head)
        check_headers(reply);
    return is_refused;
}

/* The result does not depend on how a reply is split. The first byte chooses the request and the
 * split. After an upgrade all received bytes belong to the connection, so the length differs. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct port_reply whole = { 0 }, pieces = { 0 };
    struct buf one = BUF_INIT(BODY_MAX), other = BUF_INIT(BODY_MAX);
    bool is_refused, is_refused_in_pieces;

    if (size < 2)
        return 0;
    whole.is_head = pieces.is_head = data[0] & IS_HEAD;
    whole.can_upgrade = pieces.can_upgrade = data[0] & CAN_UPGRADE;
    is_refused = feed(&whole, data + 1, size - 1, size, &one);
    is_refused_in_pieces =
        feed(&pieces, data + 1, size - 1, (size_t)(data[0] >> PIECE_SHIFT) + 1, &other);
    if (is_refused != is_refused_in_pieces)
        abort();
    if (!is_refused && !whole.is_upgraded &&
        (whole.status != pieces.status || whole.header_count != pieces.header_count ||
         one.len != other.len || (one.len > 0 && memcmp(one.data, other.data, one.len) != 0)))
        abort();
    port_reply_done(&whole);
    port_reply_done(&pieces);
    buf_done(&one);
    buf_done(&other);
    return 0;
}
