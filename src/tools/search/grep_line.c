// SPDX-License-Identifier: Apache-2.0
#include "tools/search/grep_line.h"

#include <inttypes.h>

#include "base/buf.h"
#include "base/text/utf8.h"
#include "tools/search/search_path.h"

enum { CHARS_BEFORE = 150 }; /* shown before the match in a line that is cut */

/* Returns the position `chars` characters before at. */
static size_t text_back(const char *text, size_t at, size_t chars)
{
    while (at > 0 && chars > 0) {
        at--;
        for (int i = 0; i < 3 && at > 0 && (text[at] & 0xc0) == 0x80; i++)
            at--;
        chars--;
    }
    return at;
}

static size_t text_forward(const char *text, size_t len, size_t at, size_t chars)
{
    for (; at < len && chars > 0; chars--) {
        size_t size = utf8_char(text + at, len - at);

        at += size > 0 ? size : 1;
    }
    return at;
}

void grep_line_put(const struct grep_line *line, struct buf *out)
{
    size_t len = line->len, start = 0, end;
    char mark = line->is_context ? '-' : ':';

    if (len > 0 && line->text[len - 1] == '\r')
        len--;
    end = text_forward(line->text, len, 0, GREP_LINE_CHARS);
    if (end < len && line->match < len && line->match + line->match_len > end) {
        start = text_back(line->text, line->match, CHARS_BEFORE);
        end = text_forward(line->text, len, start, GREP_LINE_CHARS);
        if (end == len)
            start = text_back(line->text, len, GREP_LINE_CHARS);
    }
    if (search_path_add(out, line->path) < 0 ||
        buf_printf(out, "%c%" PRIu64 "%c %s", mark, line->number, mark, start > 0 ? "..." : "") <
            0 ||
        utf8_add(out, line->text + start, end - start) < 0)
        return;
    (void)buf_add_str(out, end < len ? "...\n" : "\n");
}
