// SPDX-License-Identifier: Apache-2.0
/* Explains why a string is not in a file, so that the model can correct it. */
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "tools/edit/edit.h"
#include "tools/text.h"

enum {
    WHOLE_LINES = 20, /* a file with at most this many lines is shown completely */
    LINES_BEFORE = 2,
    LINES_AFTER = 4,
    SHOWN_LINES_MAX = 40,
    LINES_MAX = 200 * 1000, /* of a file that are compared */
    WANTED_LINES_MAX = 200,
    WANTED_MAX = 2 * TOOL_PARAMS_MAX, /* bytes; each LF may be CRLF now */
    SIMILAR_MIN = 40,                 /* per cent */
};

struct line {
    const char *data;
    size_t len;
    uint64_t hash; /* of all bytes but whitespace; 0: there are none */
};

struct lines {
    const struct line *at; /* in `memory` */
    size_t count;
    struct buf memory;
};

static void lines_done(struct lines *lines)
{
    buf_done(&lines->memory);
}

static uint64_t line_hash(const char *data, size_t len)
{
    uint64_t hash = 0;

    for (size_t i = 0; i < len; i++)
        if (!isspace((unsigned char)data[i]))
            hash = (hash ^ (unsigned char)data[i]) * 0x100000001b3ULL + 1;
    return hash;
}

/* Splits a text into lines, at most max. */
static void lines_split(const struct tool_text *text, size_t max, struct lines *ret)
{
    const char *at = text->data, *end = at + text->len;

    ret->memory.max = max * sizeof(struct line);
    while (at < end && ret->count < max) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((newline ? newline : end) - at);
        const struct line line = { at, len, line_hash(at, len) };

        if (buf_add(&ret->memory, &line, sizeof(line)) < 0)
            break;
        ret->count++;
        at += len + 1;
    }
    ret->at = (const void *)ret->memory.data;
}

/* Copies all bytes but whitespace, in lower case if wanted. */
static bool text_squeeze(const struct tool_text *text, bool lowers, struct buf *ret)
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

/* Returns the line, from 0, of the byte at an offset that does not count whitespace. */
static size_t squeezed_line(const struct tool_text *text, size_t offset)
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

/* Searches without whitespace, and without case if `lowers`. */
static bool find_squeezed(const struct tool_text *content, const struct tool_text *wanted,
                          bool lowers, size_t *ret_line)
{
    cleanup_with(buf_done) struct buf all = BUF_INIT(EDIT_BYTES_MAX + 1);
    cleanup_with(buf_done) struct buf part = BUF_INIT(WANTED_MAX);
    const char *hit;

    if (!text_squeeze(content, lowers, &all) || !text_squeeze(wanted, lowers, &part) ||
        part.len == 0)
        return false;
    hit = memmem(all.data, all.len, part.data, part.len);
    if (hit)
        *ret_line = squeezed_line(content, (size_t)(hit - all.data));
    return hit;
}

/* Finds the position at which most lines are equal to the wanted ones. */
static bool find_most_equal(const struct lines *lines, const struct lines *wanted, size_t *ret_line)
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

/* Returns the length of the common beginning and end, in per cent of the longer line. */
static unsigned similarity(struct line a, struct line b)
{
    size_t least = a.len < b.len ? a.len : b.len, most = a.len + b.len - least;
    size_t head = 0, tail = 0;

    while (head < least && a.data[head] == b.data[head])
        head++;
    while (tail < least - head && a.data[a.len - 1 - tail] == b.data[b.len - 1 - tail])
        tail++;
    return most ? (unsigned)(100 * (head + tail) / most) : 0;
}

static bool find_similar(const struct lines *lines, const struct lines *wanted, size_t *ret_line)
{
    unsigned best = SIMILAR_MIN - 1;
    size_t first = 0;

    while (first < wanted->count && wanted->at[first].hash == 0)
        first++;
    for (size_t i = 0; first < wanted->count && i < lines->count; i++) {
        unsigned similar = similarity(trimmed(lines->at[i]), trimmed(wanted->at[first]));

        if (similar > best) {
            best = similar;
            *ret_line = i;
        }
    }
    return best >= SIMILAR_MIN;
}

/* Returns whether each line starts with a number and a tab, as in the output of read_file. */
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

static void lines_show(const struct lines *lines, size_t from, size_t to, struct buf *out)
{
    for (size_t i = from; i < to && i < lines->count; i++) {
        const struct line *line = &lines->at[i];
        size_t len = line->len - (line->len > 0 && line->data[line->len - 1] == '\r');

        (void)text_add_line(out, i + 1, line->data, len, len);
    }
}

/* Returns the reason, and the line to show; SIZE_MAX: none. */
static const char *miss_diagnose(const struct tool_text *content, const struct tool_text *wanted,
                                 const struct lines *lines, const struct lines *parts,
                                 size_t *ret_line)
{
    bool is_small = lines->count <= WHOLE_LINES;

    *ret_line = SIZE_MAX;
    if (lines->count == 0)
        return "The file is empty.";
    if (has_numbers(parts))
        return "It contains line numbers; leave them out.";
    if (find_squeezed(content, wanted, false, ret_line))
        return "The file has it with different whitespace. Copy it exactly:";
    if (find_squeezed(content, wanted, true, ret_line))
        return "The file has it with different upper and lower case. Copy it exactly:";
    if (is_small)
        return "The whole file is:";
    if (find_most_equal(lines, parts, ret_line) || find_similar(lines, parts, ret_line))
        return "The most similar text is:";
    return "The file has nothing similar. Read it again, or search with grep.";
}

void edit_explain_miss(const char *path, const char *which, const struct tool_text *content,
                       const struct tool_text *wanted, struct tool_reply *reply)
{
    cleanup_with(lines_done) struct lines lines = { .count = 0 };
    cleanup_with(lines_done) struct lines parts = { .count = 0 };
    const char *why;
    size_t line, to;

    lines_split(content, LINES_MAX, &lines);
    lines_split(wanted, WANTED_LINES_MAX, &parts);
    why = miss_diagnose(content, wanted, &lines, &parts, &line);
    tool_reply_set_error(reply, "%sold_string was not found in '%s', and nothing was changed. %s\n",
                         which, path, why);
    if (lines.count <= WHOLE_LINES) {
        lines_show(&lines, 0, lines.count, &reply->content);
    } else if (line != SIZE_MAX) {
        to = line + parts.count + LINES_AFTER;
        line -= line < LINES_BEFORE ? line : LINES_BEFORE;
        lines_show(&lines, line, to - line > SHOWN_LINES_MAX ? line + SHOWN_LINES_MAX : to,
                   &reply->content);
    }
}
