// SPDX-License-Identifier: Apache-2.0
/* What a worker for files says: the daemon reads it as hostile. However it is cut into pieces, the
 * same messages come out; every text in them ends inside them. The first byte says how it is cut.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "wire/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 64 << 20 };

static void text_check(const struct file_piece *piece, const char *text)
{
    assert(!text || *text == '\0' ||
           (text >= piece->data && text + strlen(text) < piece->data + piece->len));
}

static void piece_check(const struct file_piece *piece)
{
    struct file_request request;
    struct file_entry entry;
    struct file_failure failure;
    struct file_event event;
    uint32_t number;

    assert(piece->type > FILE_NONE && piece->type < FILE_MESSAGE_TYPES);
    if (file_get_request(piece, &request))
        text_check(piece, request.path);
    if (file_get_entry(piece, &entry)) {
        text_check(piece, entry.path);
        text_check(piece, entry.target);
        text_check(piece, entry.same_as);
        text_check(piece, entry.user_name);
    }
    if (file_get_failure(piece, &failure)) {
        text_check(piece, failure.path);
        text_check(piece, failure.why);
    }
    if (file_get_event(piece, &event))
        assert(event.kind < FILE_EVENT_KINDS);
    (void)file_get_number(piece, &number);
}

/* What comes out, when the bytes come so many at a time: the types of whole messages, and all data
 * as one. -EPROTO where they make no sense. */
static ssize_t hear(const uint8_t *data, size_t size, size_t step, struct buf *out)
{
    struct file_parser parser = { 0 };
    size_t at = 0, known = 0;

    while (known < size || at < known) {
        struct file_piece piece;
        ssize_t n = file_next(&parser, data + at, known - at, &piece);

        if (n < 0)
            return n;
        assert((size_t)n <= known - at);
        at += (size_t)n;
        if (n > 0) {
            piece_check(&piece);
            if (piece.type != FILE_DATA)
                (void)buf_printf(out, "%d,", (int)piece.type);
            (void)buf_add(out, piece.data, piece.len);
        } else if (known == size) {
            break;
        } else {
            known = size - known < step ? size : known + step;
        }
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(buf_done) struct buf whole = BUF_INIT(TEXT_MAX);
    cleanup_with(buf_done) struct buf pieces = BUF_INIT(TEXT_MAX);

    if (size == 0)
        return 0;
    assert(hear(data + 1, size - 1, size, &whole) ==
           hear(data + 1, size - 1, (size_t)data[0] + 1, &pieces));
    assert(whole.len == pieces.len &&
           (whole.len == 0 || memcmp(whole.data, pieces.data, whole.len) == 0));
    return 0;
}
