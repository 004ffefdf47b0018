// SPDX-License-Identifier: Apache-2.0
/* Why a text is not in a file: what a model needs to know to get it right at the next try. */
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "tools/edit/edit.h"
#include "tools/text.h"

enum {
    WHOLE_LINES = 20, /* a file with no more lines is shown as a whole */
    LINES_BEFORE = 2,
    LINES_AFTER = 4,
    SHOWN_LINES_MAX = 40,
    LINES_MAX = 200 * 1000, /* of a file that are looked at */
    WANTED_LINES_MAX = 200,
    WANTED_MAX = 2 * TOOL_PARAMS_MAX, /* bytes: each LF may have become CRLF */
    LIKE_LEAST = 40,                  /* per cent of a line that must be alike */
};

struct line {
    const char *data;
    size_t len;
    uint64_t hash; /* of what is not space; 0: nothing is */
};

struct lines {
    const struct line *at; /* in memory */
    size_t count;
    struct buf memory;
};

static void lines_done(struct lines *lines)
{
    buf_done(&lines->memory);
}

static uint64_t hash_of(const char *data, size_t len)
{
    uint64_t hash = 0;

    for (size_t i = 0; i < len; i++)
        if (!isspace((unsigned char)data[i]))
            hash = (hash ^ (unsigned char)data[i]) * 0x100000001b3ULL + 1;
    return hash;
}

/* At most max of them. */
static void split(const struct tool_text *text, size_t max, struct lines *ret)
{
    const char *at = text->data, *end = at + text->len;

    ret->memory.max = max * sizeof(struct line);
    while (at < end && ret->count < max) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((newline ? newline : end) - at);
        const struct line line = { at, len, hash_of(at, len) };

        if (buf_add(&ret->memory, &line, sizeof(line)) < 0)
            break;
        ret->count++;
        at += len + 1;
    }
    ret->at = (const void *)ret->memory.data;
}

/* All that is not space, in lower case if wanted. */
static bool squeeze(const struct tool_text *text, bool lowers, struct buf *ret)
{
    buf_clear(ret);
    if (buf_reserve(ret, text->len) < 0)
        return false;
    for (size_t i = 0; i < text->len; i++) {
        int byte = (unsigned char)text->data[i];

        if (!isspace(byte))
            ret->data[ret->len++] = (char)(lowers ? tolower(byte) : byte);
    }
    return true;
}

/* In which line, from 0, the byte stands that has so many before it that are not space. */
static size_t line_of(const struct tool_text *text, size_t offset)
{
    size_t line = 0;

    for (size_t i = 0; i < text->len; i++) {
        if (text->data[i] == '\n')
            line++;
        if (!isspace((unsigned char)text->data[i]) && offset-- == 0)
            break;
    }
    return line;
}

/* Whether it is there but for spaces, and upper and lower case if those do not count. */
static bool find_squeezed(const struct tool_text *content, const struct tool_text *wanted,
                          bool lowers, size_t *ret_line)
{
    cleanup_with(buf_done) struct buf all = BUF_INIT(EDIT_BYTES_MAX + 1);
    cleanup_with(buf_done) struct buf part = BUF_INIT(WANTED_MAX);
    const char *hit;

    if (!squeeze(content, lowers, &all) || !squeeze(wanted, lowers, &part) || part.len == 0)
        return false;
    hit = memmem(all.data, all.len, part.data, part.len);
    if (hit)
        *ret_line = line_of(content, (size_t)(hit - all.data));
    return hit;
}

/* Where most lines are those that are wanted, in the order in which they are. */
static bool find_votes(const struct lines *lines, const struct lines *wanted, size_t *ret_line)
{
    cleanup_free uint16_t *votes = xcalloc(lines->count + 1, sizeof(*votes));
    uint16_t most = 0;

    for (size_t i = 0; i < lines->count; i++)
        for (size_t k = 0; lines->at[i].hash && k < wanted->count && k <= i; k++)
            if (lines->at[i].hash == wanted->at[k].hash && ++votes[i - k] > most) {
                most = votes[i - k];
                *ret_line = i - k;
            }
    return most > 0;
}

static struct line trimmed(struct line line)
{
    while (line.len > 0 && isspace((unsigned char)line.data[0]))
        line.data++, line.len--;
    while (line.len > 0 && isspace((unsigned char)line.data[line.len - 1]))
        line.len--;
    return line;
}

/* How much two lines begin and end alike, in per cent of the longer one. */
static unsigned likeness(struct line a, struct line b)
{
    size_t least = a.len < b.len ? a.len : b.len, most = a.len + b.len - least;
    size_t head = 0, tail = 0;

    while (head < least && a.data[head] == b.data[head])
        head++;
    while (tail < least - head && a.data[a.len - 1 - tail] == b.data[b.len - 1 - tail])
        tail++;
    return most ? (unsigned)(100 * (head + tail) / most) : 0;
}

static bool find_like(const struct lines *lines, const struct lines *wanted, size_t *ret_line)
{
    unsigned best = LIKE_LEAST - 1;
    size_t first = 0;

    while (first < wanted->count && wanted->at[first].hash == 0)
        first++;
    for (size_t i = 0; first < wanted->count && i < lines->count; i++) {
        unsigned like = likeness(trimmed(lines->at[i]), trimmed(wanted->at[first]));

        if (like > best) {
            best = like;
            *ret_line = i;
        }
    }
    return best >= LIKE_LEAST;
}

/* Whether each line begins with a number and a tab, as read_file shows them. */
static bool has_numbers(const struct lines *wanted)
{
    for (size_t i = 0; i < wanted->count; i++) {
        const struct line *line = &wanted->at[i];
        size_t at = 0, digits = 0;

        while (at < line->len && line->data[at] == ' ')
            at++;
        while (at + digits < line->len && isdigit((unsigned char)line->data[at + digits]))
            digits++;
        if (digits == 0 || at + digits == line->len || line->data[at + digits] != '\t')
            return false;
    }
    return wanted->count > 0;
}

static void show(const struct lines *lines, size_t from, size_t to, struct buf *out)
{
    for (size_t i = from; i < to && i < lines->count; i++) {
        const struct line *line = &lines->at[i];
        size_t len = line->len - (line->len > 0 && line->data[line->len - 1] == '\r');

        (void)text_add_line(out, i + 1, line->data, len, len);
    }
}

/* Why it was not found, and at which line to look; SIZE_MAX when nothing is like it. */
static const char *diagnose(const struct tool_text *content, const struct tool_text *wanted,
                            const struct lines *lines, const struct lines *parts, size_t *ret_line)
{
    bool is_small = lines->count <= WHOLE_LINES;

    *ret_line = SIZE_MAX;
    if (lines->count == 0)
        return "The file is empty.";
    if (has_numbers(parts))
        return "It has line numbers in front of its lines; leave them out.";
    if (find_squeezed(content, wanted, false, ret_line))
        return "It is there with other whitespace. Copy it exactly as it is:";
    if (find_squeezed(content, wanted, true, ret_line))
        return "It is there with other upper and lower case. Copy it exactly as it is:";
    if (is_small)
        return "This is the whole file:";
    if (find_votes(lines, parts, ret_line) || find_like(lines, parts, ret_line))
        return "The nearest text in it is:";
    return "Nothing in it is like that. Read the file again, or find the place with grep.";
}

void edit_explain_miss(const char *path, const char *which, const struct tool_text *content,
                       const struct tool_text *wanted, struct tool_reply *reply)
{
    cleanup_with(lines_done) struct lines lines = { .count = 0 };
    cleanup_with(lines_done) struct lines parts = { .count = 0 };
    const char *why;
    size_t line, to;

    split(content, LINES_MAX, &lines);
    split(wanted, WANTED_LINES_MAX, &parts);
    why = diagnose(content, wanted, &lines, &parts, &line);
    tool_refuse(reply, "%sold_string was not found in '%s', and nothing was changed. %s\n", which,
                path, why);
    if (lines.count <= WHOLE_LINES) {
        show(&lines, 0, lines.count, &reply->content);
    } else if (line != SIZE_MAX) {
        to = line + parts.count + LINES_AFTER;
        line -= line < LINES_BEFORE ? line : LINES_BEFORE;
        show(&lines, line, to - line > SHOWN_LINES_MAX ? line + SHOWN_LINES_MAX : to,
             &reply->content);
    }
}
