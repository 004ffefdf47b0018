// SPDX-License-Identifier: Apache-2.0
#include "base/text/plain.h"

#include <errno.h>
#include <string.h>

enum { STRING_MAX = 4096 }; /* what is longer is no escape sequence, but text behind a stray one */

/* States of ECMA-48 sequences. */
enum { TEXT, ESCAPE, INTERMEDIATE, CONTROL, STRING, STRING_ESCAPE };

enum { ESC = 0x1b, BELL = 0x07, DELETE = 0x7f, LEAD_C2 = 0xc2 };

static bool is_ordinary(unsigned char byte)
{
    return (byte >= ' ' && byte != DELETE && byte != LEAD_C2) || byte == '\t';
}

/* Passes the line on when it is full; then its start cannot be overwritten any more. */
static int line_add(struct plain_text *plain, const char *data, size_t len, struct buf *out)
{
    int r = 0;

    if (plain->has_returned)
        buf_clear(&plain->line);
    plain->has_returned = false;
    while (len > 0 && r == 0) {
        size_t room = PLAIN_LINE_MAX - plain->line.len, part = len < room ? len : room;

        r = buf_add(&plain->line, data, part);
        data += part;
        len -= part;
        if (r == 0 && plain->line.len == PLAIN_LINE_MAX) {
            r = buf_add(out, plain->line.data, plain->line.len);
            buf_clear(&plain->line);
        }
    }
    return r;
}

static int line_end(struct plain_text *plain, struct buf *out)
{
    int r = plain->line.len > 0 ? buf_add(out, plain->line.data, plain->line.len) : 0;

    buf_clear(&plain->line);
    plain->has_returned = false;
    return r == 0 ? buf_add(out, "\n", 1) : r;
}

static void character_remove(struct buf *line)
{
    while (line->len > 0 && ((unsigned char)line->data[line->len - 1] & 0xc0) == 0x80)
        line->len--;
    if (line->len > 0)
        line->len--;
}

static int text_take(struct plain_text *plain, unsigned char byte, struct buf *out)
{
    switch (byte) {
    case '\n':
        return line_end(plain, out);
    case '\r':
        plain->has_returned = true;
        return 0;
    case '\b':
        character_remove(&plain->line);
        return 0;
    case ESC:
        plain->state = ESCAPE;
        return 0;
    case LEAD_C2:
        plain->has_c2 = true;
        return 0;
    default:
        return 0;
    }
}

/* The character after 0xc2 is a control character up to 0x9f. */
static int c2_take(struct plain_text *plain, unsigned char byte, struct buf *out)
{
    const char both[] = { (char)LEAD_C2, (char)byte };

    plain->has_c2 = false;
    return byte >= 0x80 && byte <= 0x9f ? 0 : line_add(plain, both, sizeof(both), out);
}

static void escape_take(struct plain_text *plain, unsigned char byte)
{
    if (byte == '[')
        plain->state = CONTROL;
    else if (byte && strchr("]PX^_", byte))
        plain->state = STRING;
    else
        plain->state = byte >= ' ' && byte <= '/' ? INTERMEDIATE : TEXT;
    plain->string_len = 0;
}

/* Of the sequences that move the cursor, those within a line have an effect. */
static void control_end(struct plain_text *plain, unsigned char final)
{
    plain->state = TEXT;
    if (final == 'G')
        plain->has_returned = true;
    if (final == 'K' && plain->has_returned)
        buf_clear(&plain->line);
}

/* Takes a byte of a sequence that is a string or has intermediate bytes. */
static void string_take(struct plain_text *plain, unsigned char byte)
{
    bool is_end = plain->state == INTERMEDIATE    ? byte >= '0' && byte <= '~'
                  : plain->state == STRING_ESCAPE ? byte == '\\'
                                                  : byte == BELL;

    if (is_end)
        plain->state = TEXT;
    else if (plain->state != INTERMEDIATE)
        plain->state = byte == ESC ? STRING_ESCAPE : STRING;
}

/* A line end is never part of a sequence: what began there was none. Returns whether the byte is
 * text. */
static bool sequence_take(struct plain_text *plain, unsigned char byte)
{
    bool is_broken = byte == '\n' || ++plain->string_len > STRING_MAX;

    if (is_broken)
        plain->state = TEXT;
    else if (plain->state == ESCAPE)
        escape_take(plain, byte);
    else if (plain->state != CONTROL)
        string_take(plain, byte);
    else if (byte >= '@' && byte <= '~')
        control_end(plain, byte);
    return is_broken;
}

int plain_add(struct plain_text *plain, const char *data, size_t len, struct buf *out)
{
    int r = 0;

    for (size_t i = 0; i < len && r == 0;) {
        unsigned char byte = (unsigned char)data[i];
        size_t run = 0;

        if (plain->state != TEXT && !sequence_take(plain, byte)) {
            i++;
        } else if (plain->has_c2) {
            r = c2_take(plain, byte, out);
            i++;
        } else {
            while (i + run < len && is_ordinary((unsigned char)data[i + run]))
                run++;
            r = run > 0 ? line_add(plain, data + i, run, out) : text_take(plain, byte, out);
            i += run > 0 ? run : 1;
        }
    }
    return r;
}

int plain_end(struct plain_text *plain, struct buf *out)
{
    int r = plain->line.len > 0 ? buf_add(out, plain->line.data, plain->line.len) : 0;

    buf_clear(&plain->line);
    plain->state = TEXT;
    plain->has_returned = plain->has_c2 = false;
    return r;
}

void plain_done(struct plain_text *plain)
{
    buf_done(&plain->line);
}
