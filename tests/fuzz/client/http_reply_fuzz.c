// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "client/error.h"
#include "client/transport/http.h"
#include "holt.h"

enum { BODY_MAX = 64 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Feeds a reply in pieces: 0 when it is complete, 1 when it is not, -1 when it was refused. */
static int feed(struct http *http, const char *data, size_t size, size_t piece)
{
    const struct http_request request = { .reply_max = BODY_MAX, .deadline = HOLT_NO_DEADLINE };
    struct holt_error error;

    /* Without a descriptor nothing is sent, but the reader is ready for a reply. */
    http_init(http, NULL);
    (void)http_send(http, &request, &error);
    while (size > 0 && !http->is_complete) {
        size_t len = size < piece ? size : piece;

        if (http_feed(http, data, len, &error) < 0)
            return -1;
        data += len;
        size -= len;
    }
    if (http->body.len > BODY_MAX)
        abort();
    return !http->is_complete;
}

static int same_bytes(const struct buf *one, const struct buf *other)
{
    return one->len == other->len &&
           (one->len == 0 || memcmp(one->data, other->data, one->len) == 0);
}

/* However a reply is cut, the same is read. The first byte says how it is cut. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http whole, pieces;
    struct holt_error ignored;
    int r, r_pieces;

    if (size < 2)
        return 0;
    r = feed(&whole, (const char *)data + 1, size - 1, size);
    r_pieces = feed(&pieces, (const char *)data + 1, size - 1, (size_t)data[0] + 1);
    if (r == 0 && (r_pieces != 0 || !same_bytes(&whole.body, &pieces.body) ||
                   whole.parser.status_code != pieces.parser.status_code))
        abort();
    if (r == 0)
        (void)error_from_reply(&ignored, whole.parser.status_code, whole.body.data, whole.body.len);
    else
        (void)http_feed(&whole, "", 0, &ignored);
    http_done(&whole);
    http_done(&pieces);
    return 0;
}
