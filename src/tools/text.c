// SPDX-License-Identifier: Apache-2.0
#include "tools/text.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/utf8.h"
#include "tools/tool.h"

enum { NUMBER_WIDTH = 6, ERROR_MAX = 3 * PATH_MAX + 1024, TEXTS = 4 };

void tool_reply_set_error(struct tool_reply *reply, const char *format, ...)
{
    char text[ERROR_MAX];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    buf_clear(&reply->content);
    buf_clear(&reply->changed);
    (void)utf8_add(&reply->content, text, strlen(text));
    reply->outcome = (struct tool_outcome){ .flags = TOOL_IS_ERROR };
}

bool text_is_binary(const char *data, size_t len)
{
    return len > 0 && memchr(data, '\0', len < BINARY_LOOK ? len : BINARY_LOOK);
}

const char *text_image_type(const char *data, size_t len)
{
    static const struct {
        const char *magic;
        size_t len;
        const char *type;
    } rows[] = {
        { "\x89PNG\r\n\x1a\n", 8, "image/png" },
        { "\xff\xd8\xff", 3, "image/jpeg" },
        { "GIF87a", 6, "image/gif" },
        { "GIF89a", 6, "image/gif" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (len >= rows[i].len && memcmp(data, rows[i].magic, rows[i].len) == 0)
            return rows[i].type;
    if (len >= 12 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0)
        return "image/webp";
    return NULL;
}

int text_add_number(struct buf *out, uint64_t number)
{
    char text[NUMBER_BYTES_MAX];
    size_t at = sizeof(text) - 1;

    text[at] = '\t';
    do
        text[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (sizeof(text) - 1 - at < NUMBER_WIDTH)
        text[--at] = ' ';
    return buf_add(out, text + at, sizeof(text) - at);
}

int text_add_line(struct buf *out, uint64_t number, const char *data, size_t len, uint64_t of_bytes)
{
    size_t shown = utf8_cut(data, len, LINE_BYTES_MAX);
    long r = text_add_number(out, number);

    if (r == 0)
        r = utf8_add(out, data, shown);
    if (r >= 0 && shown < of_bytes)
        r = buf_printf(out, " [... %" PRIu64 " more bytes in this line]", of_bytes - shown);
    if (r >= 0)
        r = buf_add(out, "\n", 1);
    return r < 0 ? (int)r : 0;
}

int text_add_name(struct buf *out, const char *name)
{
    size_t left = strlen(name);
    int r = 0;

    while (r == 0 && left > 0) {
        unsigned char first = (unsigned char)*name;
        size_t len = utf8_char(name, left);

        if (first == '\n' || first == '\t')
            r = buf_add_str(out, first == '\n' ? "\\n" : "\\t");
        else if (len == 0 || first < ' ' || first == 0x7f)
            r = buf_printf(out, "\\x%02x", first);
        else
            r = buf_add(out, name, len);
        name += len ? len : 1;
        left -= len ? len : 1;
    }
    return r;
}

const char *text_count(uint64_t count, const char *noun)
{
    static char texts[TEXTS][64];
    static unsigned next;
    char *ret = texts[next++ % TEXTS];

    (void)snprintf(ret, sizeof(texts[0]), "%" PRIu64 " %s%s", count, noun, count == 1 ? "" : "s");
    return ret;
}
