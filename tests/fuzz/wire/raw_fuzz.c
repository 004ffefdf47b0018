// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "client/error.h"
#include "holt.h"
#include "wire/raw.h"

enum { CONTENT_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The receiver: a client, or the daemon in a stream, or in a client stream. */
enum side { SIDE_CLIENT, SIDE_STREAM, SIDE_UPLOAD, SIDES };

static void piece_check(const struct raw_piece *piece, bool is_daemon, const uint8_t *data,
                        size_t used)
{
    struct holt_error ignored;

    if ((piece->type >= RAW_STDIN) != is_daemon || piece->type == RAW_NONE || piece->len > used ||
        (piece->len > 0 && (const uint8_t *)piece->data + piece->len != data + used))
        abort();
    if (piece->type == RAW_END)
        (void)error_from_end(&ignored, piece->data, piece->len);
}

/* Receives at most step bytes at a time and appends the contents. Returns the result of the last
 * call. */
static ssize_t parse(const uint8_t *data, size_t size, enum side side, size_t step,
                     struct buf *content)
{
    bool is_daemon = side != SIDE_CLIENT;
    struct raw_parser parser = { .is_daemon = is_daemon, .is_upload = side == SIDE_UPLOAD };
    struct raw_piece piece;
    size_t at = 0, end = step < size ? step : size;
    ssize_t n = 0;

    while (at < size) {
        n = raw_next(&parser, data + at, end - at, &piece);
        if (n < 0 || (n == 0 && end == size))
            break;
        if (n > 0) {
            if ((size_t)n > end - at)
                abort();
            piece_check(&piece, is_daemon, data + at, (size_t)n);
            if (buf_add(content, piece.data, piece.len) < 0)
                abort();
        }
        at += (size_t)n;
        if (n == 0 || at == end)
            end = size - end < step ? size : end + step;
    }
    return n < 0 ? n : 0;
}

/* The result does not depend on how the bytes arrive. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > CONTENT_MAX)
        return 0;
    for (enum side side = SIDE_CLIENT; side < SIDES; side++) {
        cleanup_with(buf_done) struct buf at_once = BUF_INIT(CONTENT_MAX);
        cleanup_with(buf_done) struct buf in_steps = BUF_INIT(CONTENT_MAX);

        if (parse(data, size, side, size, &at_once) != parse(data, size, side, 1, &in_steps) ||
            at_once.len != in_steps.len ||
            (at_once.len > 0 && memcmp(at_once.data, in_steps.data, at_once.len) != 0))
            abort();
    }
    return 0;
}
