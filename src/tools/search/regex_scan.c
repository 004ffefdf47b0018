// SPDX-License-Identifier: Apache-2.0
#include "tools/search/regex_scan.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "tools/search/wildcard.h"

enum { TEXT_MAX = 64 * 1024 * 1024 };

/* The position in the expression, and the current run of literal characters. */
struct reader {
    struct regex_scan *scan;
    const char *text;
    size_t len, at;
    size_t depth;      /* of parentheses */
    struct buf run;    /* consecutive literal characters outside of parentheses */
    size_t last_char;  /* offset of the last one in run */
    bool in_run;       /* the last element is the last character of run */
    bool no_literal;   /* no string is in every match */
    bool only_literal; /* only literal characters so far */
    int error;
};

static void reader_emit(struct reader *reader, const char *text, size_t len)
{
    if (buf_add(&reader->scan->text, text, len) < 0)
        reader->error = -ENOMEM;
}

static void reader_emit_str(struct reader *reader, const char *text)
{
    reader_emit(reader, text, strlen(text));
}

/* Ends a run of literal characters; the longest run is kept. */
static void reader_end_run(struct reader *reader)
{
    struct buf *best = &reader->scan->literal;

    if (reader->run.len > best->len) {
        buf_clear(best);
        if (buf_add(best, reader->run.data, reader->run.len) < 0)
            reader->error = -ENOMEM;
    }
    buf_clear(&reader->run);
    reader->in_run = false;
}

static void reader_add_other(struct reader *reader)
{
    reader_end_run(reader);
    reader->only_literal = false;
}

/* Without case, k and s match characters outside of ASCII, and non-ASCII letters match each other.
 */
static bool has_odd_case(const struct reader *reader, char c)
{
    return reader->scan->ignore_case && ((unsigned char)c >= 0x80 || strchr("kKsS", c));
}

/* Adds a literal character of len bytes. */
static void reader_add_char(struct reader *reader, const char *text, size_t len)
{
    if ((unsigned char)*text >= 0x80 || has_odd_case(reader, *text))
        reader->scan->needs_utf = true;
    if (*text == '\n')
        reader->scan->is_for_lines = reader->scan->has_newline = true;
    if (reader->depth > 0)
        return;
    if (has_odd_case(reader, *text)) {
        reader_add_other(reader);
        return;
    }
    reader->last_char = reader->run.len;
    if (buf_add(&reader->run, text, len) < 0)
        reader->error = -ENOMEM;
    reader->in_run = true;
}

/* Adds an element that is not understood. */
static void reader_add_unknown(struct reader *reader)
{
    reader_add_other(reader);
    reader->scan->is_for_lines = reader->scan->needs_utf = true;
}

/* Returns the character of an escape such as \t, or 0. */
static char control_char(char c)
{
    switch (c) {
    case 't':
        return '\t';
    case 'f':
        return '\f';
    case 'e':
        return 27;
    case 'a':
        return 7;
    case 'r':
        return '\r';
    default:
        return 0;
    }
}

/* Reads \Q...\E, which contains literal characters. */
static void reader_read_quoted(struct reader *reader)
{
    reader_emit_str(reader, "\\Q");
    while (reader->at < reader->len) {
        unsigned ignored;
        size_t size;

        if (reader->len - reader->at >= 2 && memcmp(reader->text + reader->at, "\\E", 2) == 0)
            break;
        size = wildcard_char(reader->text + reader->at, reader->len - reader->at, &ignored);
        reader_emit(reader, reader->text + reader->at, size);
        reader_add_char(reader, reader->text + reader->at, size);
        reader->at += size;
    }
    reader_emit_str(reader, "\\E");
    reader->at += reader->at < reader->len ? 2 : 0;
}

/* Handles a backslash and a letter or digit, which are read already. */
static void reader_read_escape_class(struct reader *reader, char c)
{
    static const struct {
        char c;
        bool needs_utf; /* it also matches non-ASCII characters, or positions in them */
        const char *instead;
    } classes[] = {
        { 'd', false, "\\d" },      { 'w', false, "\\w" },      { 'h', true, "\\h" },
        { 'b', false, "\\b" },      { 'B', true, "\\B" },       { 's', false, "[^\\S\\n]" },
        { 'D', true, "[^\\d\\n]" }, { 'W', true, "[^\\w\\n]" }, { 'S', true, "\\S" },
        { 'H', true, "[^\\h\\n]" },
    };

    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (classes[i].c != c)
            continue;
        reader_emit_str(reader, classes[i].instead);
        reader->scan->needs_utf |= classes[i].needs_utf;
        reader_add_other(reader);
        return;
    }
    if (c == 'n')
        reader->scan->has_newline = true;
    if (!strchr("nAZzGKvVXR", c))
        reader->no_literal = true; /* the following characters may be part of the escape */
    reader_emit(reader, (char[]){ '\\', c }, 2);
    reader_add_unknown(reader);
}

static void reader_read_escape(struct reader *reader)
{
    unsigned ignored;
    size_t size;
    char c;

    if (++reader->at == reader->len) {
        reader_emit_str(reader, "\\");
        reader_add_unknown(reader);
        return;
    }
    c = reader->text[reader->at];
    size = wildcard_char(reader->text + reader->at, reader->len - reader->at, &ignored);
    reader->at += size;
    if (c == 'Q') {
        reader_read_quoted(reader);
    } else if (control_char(c)) {
        reader_emit(reader, (char[]){ '\\', c }, 2);
        reader_add_char(reader, (char[]){ control_char(c) }, 1);
    } else if (isalnum((unsigned char)c)) {
        reader_read_escape_class(reader, c);
    } else {
        reader_emit_str(reader, "\\");
        reader_emit(reader, reader->text + reader->at - size, size);
        reader_add_char(reader, reader->text + reader->at - size, size);
    }
}

/* Returns the length of [:name:] in a class, or 0, and whether it never matches a newline. */
static size_t posix_class(const char *text, size_t len, bool *ret_is_safe)
{
    static const char *const safe[] = { "alpha", "digit",  "alnum", "upper", "lower",
                                        "punct", "xdigit", "word",  "blank", "graph" };
    const char *end = len >= 4 && text[0] == '[' && strchr(":.=", text[1])
                          ? memmem(text + 2, len - 2, (char[]){ text[1], ']' }, 2)
                          : NULL;

    *ret_is_safe = false;
    if (!end)
        return 0;
    for (size_t i = 0; i < sizeof(safe) / sizeof(safe[0]); i++)
        if (text[1] == ':' && strlen(safe[i]) == (size_t)(end - text) - 2 &&
            memcmp(safe[i], text + 2, strlen(safe[i])) == 0)
            *ret_is_safe = true;
    return (size_t)(end - text) + 2;
}

/* Returns whether a backslash and c never match a newline in a class. */
static bool is_safe_in_class(char c, bool is_range)
{
    if (c == 't')
        return !is_range;
    return strchr("wdhrfe", c) || (!isalnum((unsigned char)c) && (unsigned char)c < 0x80);
}

/* Returns the length of the item of a class at reader->at. */
static size_t reader_class_item(struct reader *reader, bool *is_safe)
{
    const char *text = reader->text + reader->at;
    size_t left = reader->len - reader->at;
    bool is_posix_safe;
    size_t posix = posix_class(text, left, &is_posix_safe);

    if (posix > 0) {
        *is_safe &= is_posix_safe;
        return posix;
    }
    if (*text == '\\' && left > 1) {
        *is_safe &= is_safe_in_class(text[1], left > 2 && text[2] == '-');
        reader->scan->needs_utf |= text[1] == 'h';
        if (isalnum((unsigned char)text[1]) && !strchr("wWdDsShHvVntrfebxpP", text[1])) {
            reader_add_unknown(reader); /* the end of the class is uncertain */
            reader->no_literal = true;
        }
        return 2;
    }
    /* A range that starts with a control character may contain the newline. */
    if ((unsigned char)*text < ' ' && !(*text == '\t' && (left < 2 || text[1] != '-')))
        *is_safe = false;
    if ((unsigned char)*text >= 0x80 || reader->scan->ignore_case)
        reader->scan->needs_utf = true;
    return 1;
}

static void reader_read_class(struct reader *reader)
{
    bool is_negated, is_safe = true;

    reader_add_other(reader);
    reader_emit_str(reader, "[");
    reader->at++;
    is_negated = reader->at < reader->len && reader->text[reader->at] == '^';
    if (is_negated) {
        reader_emit_str(reader, "^\\n");
        reader->at++;
        reader->scan->needs_utf = true;
    }
    for (bool is_first = true; reader->at < reader->len; is_first = false) {
        const char *text = reader->text + reader->at;
        size_t size;

        if (*text == ']' && !is_first)
            break;
        size = reader_class_item(reader, &is_safe);
        if (*text == ']' || (is_first && *text == '-'))
            reader_emit_str(reader, "\\"); /* no longer the first item, but still literal */
        reader_emit(reader, text, size);
        reader->at += size;
    }
    if (!is_negated && !is_safe)
        reader_add_unknown(reader);
    if (reader->at < reader->len) {
        reader_emit_str(reader, "]");
        reader->at++;
    }
}

static bool reader_is_at(const struct reader *reader, const char *text)
{
    size_t len = strlen(text);

    return reader->len - reader->at >= len && memcmp(reader->text + reader->at, text, len) == 0;
}

/* Reads the start of a group. */
static void reader_read_group(struct reader *reader)
{
    static const char *const known[] = {
        "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?|", "(?P<"
    };
    size_t size = 1;

    reader_add_other(reader);
    reader->depth++;
    if (reader_is_at(reader, "(?i)") || reader_is_at(reader, "(?i:")) {
        reader->no_literal = reader->scan->needs_utf = true; /* in any case */
        size = 3;
    } else if (reader_is_at(reader, "(?<") && reader->len - reader->at > 3 &&
               isalpha((unsigned char)reader->text[reader->at + 3])) {
        size = 3;
    } else if (reader_is_at(reader, "(?") || reader_is_at(reader, "(*")) {
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            if (reader_is_at(reader, known[i]))
                size = strlen(known[i]);
        if (reader_is_at(reader, "(?!") || reader_is_at(reader, "(?<!"))
            reader->scan->needs_utf =
                true; /* a negative assertion must not match inside a character */
        if (size == 1) {
            reader_add_unknown(reader);
            reader->no_literal = true;
        }
    }
    reader_emit(reader, reader->text + reader->at, size);
    reader->at += size;
}

/* Returns the length of {n}, {n,} or {n,m} at reader->at, or 0; *ret_least is n. */
static size_t reader_match_braces(const struct reader *reader, unsigned *ret_least)
{
    const char *text = reader->text + reader->at;
    size_t left = reader->len - reader->at, i = 1;

    *ret_least = 0;
    for (; i < left && isdigit((unsigned char)text[i]); i++)
        *ret_least |= (unsigned)(text[i] - '0');
    if (i == 1)
        return 0;
    if (i < left && text[i] == ',')
        for (i++; i < left && isdigit((unsigned char)text[i]);)
            i++;
    return i < left && text[i] == '}' ? i + 1 : 0;
}

/* Reads a quantifier. If it allows zero occurrences, the last character is not in every match. */
static void reader_read_quantifier(struct reader *reader, size_t size, bool may_be_none)
{
    if (reader->in_run && may_be_none && reader->depth == 0)
        reader->run.len = reader->last_char;
    reader_add_other(reader);
    reader_emit(reader, reader->text + reader->at, size);
    reader->at += size;
}

static void reader_read_one(struct reader *reader)
{
    unsigned least = 1, ignored;
    size_t size;
    char c = reader->text[reader->at];

    switch (c) {
    case '\\':
        reader_read_escape(reader);
        return;
    case '[':
        reader_read_class(reader);
        return;
    case '(':
        reader_read_group(reader);
        return;
    case '*':
    case '?':
    case '+':
        reader_read_quantifier(reader, 1, c != '+');
        return;
    case '{':
        size = reader_match_braces(reader, &least);
        if (size > 0) {
            reader_read_quantifier(reader, size, least == 0);
            return;
        }
        break;
    case '|':
        reader->no_literal |= reader->depth == 0;
        reader_read_quantifier(reader, 1, false);
        return;
    case '.':
        reader->scan->needs_utf = true;
        reader_read_quantifier(reader, 1, false);
        return;
    case '^':
    case '$':
        reader_read_quantifier(reader, 1, false);
        return;
    case ')':
        reader->depth -= reader->depth > 0;
        reader_read_quantifier(reader, 1, false);
        return;
    default:
        break;
    }
    size = wildcard_char(reader->text + reader->at, reader->len - reader->at, &ignored);
    reader_emit(reader, reader->text + reader->at, size);
    reader_add_char(reader, reader->text + reader->at, size);
    reader->at += size;
}

int regex_scan(struct regex_scan *scan, const char *pattern, size_t len, bool ignore_case)
{
    struct reader reader = {
        .scan = scan, .text = pattern, .len = len, .run = BUF_INIT(TEXT_MAX), .only_literal = true
    };

    *scan = (struct regex_scan){ .text = BUF_INIT(TEXT_MAX),
                                 .literal = BUF_INIT(TEXT_MAX),
                                 .ignore_case = ignore_case };
    while (reader.at < len && reader.error == 0)
        reader_read_one(&reader);
    if (reader.only_literal && reader.run.len > 0)
        scan->is_literal = true;
    reader_end_run(&reader);
    if (reader.no_literal)
        buf_clear(&scan->literal);
    buf_done(&reader.run);
    if (reader.error < 0)
        regex_scan_done(scan);
    return reader.error;
}

void regex_scan_done(struct regex_scan *scan)
{
    buf_done(&scan->text);
    buf_done(&scan->literal);
}
