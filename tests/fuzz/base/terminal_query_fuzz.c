// SPDX-License-Identifier: Apache-2.0
/* Output of any program: the result has the same length, does not depend on where the pieces end
 * (the first byte gives their size), and has no request left. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/terminal_query.h"
#include "base/xalloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void hide_in_pieces(const char *text, size_t len, size_t piece, char *ret)
{
    struct terminal_query_filter filter = { .string = STRING_NONE };
    cleanup_free char *room = xcalloc(1, piece + TERMINAL_QUERY_MAX);
    size_t held = 0, out = 0;

    for (size_t at = 0; at < len; at += piece) {
        size_t part = len - at < piece ? len - at : piece, done;

        memcpy(room + held, text + at, part);
        done = terminal_query_hide(&filter, room, held + part, at + part == len);
        assert(done <= held + part);
        memcpy(ret + out, room, done);
        out += done;
        held = held + part - done;
        assert(held < TERMINAL_QUERY_MAX);
        memmove(room, room + done, held);
    }
    assert(held == 0 && out == len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data + 1;
    size_t len = size - 1;
    cleanup_free char *whole = NULL, *pieces = NULL, *again = NULL;

    if (size < 2)
        return 0;
    whole = xcalloc(1, len);
    pieces = xcalloc(1, len);
    again = xcalloc(1, len);
    hide_in_pieces(text, len, len, whole);
    hide_in_pieces(text, len, (size_t)data[0] + 1, pieces);
    assert(memcmp(whole, pieces, len) == 0);
    hide_in_pieces(whole, len, len, again);
    assert(memcmp(whole, again, len) == 0);
    return 0;
}
