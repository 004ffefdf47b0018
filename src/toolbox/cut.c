// SPDX-License-Identifier: Apache-2.0
#include "toolbox/cut.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/text/utf8.h"

/* Returns the end of the last line that fits; cuts a line that takes more than half of the room. */
static size_t head_end(const char *text, size_t len, size_t room)
{
    const char *newline = memrchr(text, '\n', room);

    if (newline && (size_t)(newline - text) + 1 >= room / 2)
        return (size_t)(newline - text) + 1;
    return utf8_cut(text, len, room);
}

static size_t tail_start(const char *text, size_t len, size_t room)
{
    size_t from = len - room;
    const char *newline = from > 0 ? memchr(text + from - 1, '\n', room / 2 + 1) : NULL;

    if (newline)
        return (size_t)(newline - text) + 1;
    while (from < len && utf8_cut(text, len, from) != from)
        from++;
    return from;
}

struct tool_cut tool_cut(const char *text, size_t len, size_t budget)
{
    struct tool_cut cut = { .head = len, .tail = len };
    const char *at, *end;

    if (len <= budget)
        return cut;
    cut.head = head_end(text, len, budget / 2);
    cut.tail = tail_start(text, len, budget - budget / 2);
    at = text + cut.head;
    end = text + cut.tail;
    while ((at = memchr(at, '\n', (size_t)(end - at)))) {
        cut.missing_lines++;
        at++;
    }
    return cut;
}

int tool_cut_add(struct buf *out, const char *text, size_t len, const struct tool_cut *cut,
                 const char *handle)
{
    bool is_within = cut->head > 0 && text[cut->head - 1] != '\n';
    int r = buf_add(out, text, cut->head);

    if (r == 0)
        r = buf_printf(out, "%s[... %zu bytes, %" PRIu64 " lines, are not shown",
                       is_within ? "\n" : "", cut->tail - cut->head, cut->missing_lines);
    if (r == 0 && handle)
        r = buf_printf(out, "; to read them: read_output handle=%s offset=%zu", handle, cut->head);
    if (r == 0)
        r = buf_add_str(out, " ...]\n");
    return r == 0 ? buf_add(out, text + cut->tail, len - cut->tail) : r;
}
