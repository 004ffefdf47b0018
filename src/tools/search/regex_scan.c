// SPDX-License-Identifier: Apache-2.0
#include "tools/search/regex_scan.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "tools/search/wildcard.h"

enum { TEXT_MAX = 64 * 1024 * 1024 };

/* Where the reading is, and the literal text that goes on there. */
struct reader {
    struct regex_scan *scan;
    const char *text;
    size_t len, at;
    size_t depth;      /* of parentheses */
    struct buf run;    /* literal characters, one after the other, outside of parentheses */
    size_t last_char;  /* where the last of them begins in run */
    bool in_run;       /* the last thing read is the last character of run */
    bool no_literal;   /* nothing is sure to be in a match */
    bool only_literal; /* nothing but characters so far */
    int error;
};

static void emit(struct reader *reader, const char *text, size_t len)
{
    if (buf_add(&reader->scan->text, text, len) < 0)
        reader->error = -ENOMEM;
}

static void emit_str(struct reader *reader, const char *text)
{
    emit(reader, text, strlen(text));
}

/* Something that is no plain character ends a run; the longest is kept. */
static void end_run(struct reader *reader)
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

static void other(struct reader *reader)
{
    end_run(reader);
    reader->only_literal = false;
}

/* Without regard to case, k and s are alike with characters beyond ASCII, and so are letters there
 * among themselves. */
static bool has_odd_case(const struct reader *reader, char c)
{
    return reader->scan->ignore_case && ((unsigned char)c >= 0x80 || strchr("kKsS", c));
}

/* A plain character of len bytes. */
static void character(struct reader *reader, const char *text, size_t len)
{
    if ((unsigned char)*text >= 0x80 || has_odd_case(reader, *text))
        reader->scan->needs_utf = true;
    if (*text == '\n')
        reader->scan->is_for_lines = reader->scan->has_newline = true;
    if (reader->depth > 0)
        return;
    if (has_odd_case(reader, *text)) {
        other(reader);
        return;
    }
    reader->last_char = reader->run.len;
    if (buf_add(&reader->run, text, len) < 0)
        reader->error = -ENOMEM;
    reader->in_run = true;
}

/* An expression about which nothing more is claimed. */
static void unknown(struct reader *reader)
{
    other(reader);
    reader->scan->is_for_lines = reader->scan->needs_utf = true;
}

/* The character of \t and the like; 0 for what is none. */
static char control(char c)
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

/* \Q...\E: all characters between are plain. */
static void quoted(struct reader *reader)
{
    emit_str(reader, "\\Q");
    while (reader->at < reader->len) {
        unsigned ignored;
        size_t size;

        if (reader->len - reader->at >= 2 && memcmp(reader->text + reader->at, "\\E", 2) == 0)
            break;
        size = wildcard_char(reader->text + reader->at, reader->len - reader->at, &ignored);
        emit(reader, reader->text + reader->at, size);
        character(reader, reader->text + reader->at, size);
        reader->at += size;
    }
    emit_str(reader, "\\E");
    reader->at += reader->at < reader->len ? 2 : 0;
}

/* A backslash and a letter or digit, which has been passed. */
static void escape_class(struct reader *reader, char c)
{
    static const struct {
        char c;
        bool needs_utf; /* it also matches what is not ASCII, or within it */
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
        emit_str(reader, classes[i].instead);
        reader->scan->needs_utf |= classes[i].needs_utf;
        other(reader);
        return;
    }
    if (c == 'n')
        reader->scan->has_newline = true;
    if (!strchr("nAZzGKvVXR", c))
        reader->no_literal = true; /* what follows may belong to it */
    emit(reader, (char[]){ '\\', c }, 2);
    unknown(reader);
}

static void escape(struct reader *reader)
{
    unsigned ignored;
    size_t size;
    char c;

    if (++reader->at == reader->len) {
        emit_str(reader, "\\");
        unknown(reader);
        return;
    }
    c = reader->text[reader->at];
    size = wildcard_char(reader->text + reader->at, reader->len - reader->at, &ignored);
    reader->at += size;
    if (c == 'Q') {
        quoted(reader);
    } else if (control(c)) {
        emit(reader, (char[]){ '\\', c }, 2);
        character(reader, (char[]){ control(c) }, 1);
    } else if (isalnum((unsigned char)c)) {
        escape_class(reader, c);
    } else {
        emit_str(reader, "\\");
        emit(reader, reader->text + reader->at - size, size);
        character(reader, reader->text + reader->at - size, size);
    }
}

/* [:name:] in a class: its length, 0 for what is none, and whether it leaves newlines alone. */
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

/* Whether what a backslash and c stand for in a class leaves newlines alone. */
static bool is_safe_in_class(char c, bool is_range)
{
    if (c == 't')
        return !is_range;
    return strchr("wdhrfe", c) || (!isalnum((unsigned char)c) && (unsigned char)c < 0x80);
}

/* One item of a class, from reader->at on: its length. */
static size_t class_item(struct reader *reader, bool *is_safe)
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
            unknown(reader); /* the class may end somewhere else */
            reader->no_literal = true;
        }
        return 2;
    }
    /* A range that begins with a control character may hold the newline. */
    if ((unsigned char)*text < ' ' && !(*text == '\t' && (left < 2 || text[1] != '-')))
        *is_safe = false;
    if ((unsigned char)*text >= 0x80 || reader->scan->ignore_case)
        reader->scan->needs_utf = true;
    return 1;
}

static void class(struct reader *reader)
{
    bool is_negated, is_safe = true;

    other(reader);
    emit_str(reader, "[");
    reader->at++;
    is_negated = reader->at < reader->len && reader->text[reader->at] == '^';
    if (is_negated) {
        emit_str(reader, "^\\n");
        reader->at++;
        reader->scan->needs_utf = true;
    }
    for (bool is_first = true; reader->at < reader->len; is_first = false) {
        const char *text = reader->text + reader->at;
        size_t size;

        if (*text == ']' && !is_first)
            break;
        size = class_item(reader, &is_safe);
        if (*text == ']' || (is_first && *text == '-'))
            emit_str(reader, "\\"); /* it is no longer the first, and means itself all the same */
        emit(reader, text, size);
        reader->at += size;
    }
    if (!is_negated && !is_safe)
        unknown(reader);
    if (reader->at < reader->len) {
        emit_str(reader, "]");
        reader->at++;
    }
}

static bool comes(const struct reader *reader, const char *text)
{
    size_t len = strlen(text);

    return reader->len - reader->at >= len && memcmp(reader->text + reader->at, text, len) == 0;
}

/* What an opening parenthesis is. */
static void group(struct reader *reader)
{
    static const char *const known[] = {
        "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?|", "(?P<"
    };
    size_t size = 1;

    other(reader);
    reader->depth++;
    if (comes(reader, "(?i)") || comes(reader, "(?i:")) {
        reader->no_literal = reader->scan->needs_utf = true; /* in whatever case it is */
        size = 3;
    } else if (comes(reader, "(?<") && reader->len - reader->at > 3 &&
               isalpha((unsigned char)reader->text[reader->at + 3])) {
        size = 3;
    } else if (comes(reader, "(?") || comes(reader, "(*")) {
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            if (comes(reader, known[i]))
                size = strlen(known[i]);
        if (comes(reader, "(?!") || comes(reader, "(?<!"))
            reader->scan->needs_utf = true; /* what is not there is not within a character either */
        if (size == 1) {
            unknown(reader);
            reader->no_literal = true;
        }
    }
    emit(reader, reader->text + reader->at, size);
    reader->at += size;
}

/* {n}, {n,} or {n,m} at reader->at: its length, 0 for what is none; *ret_least is n. */
static size_t braces(const struct reader *reader, unsigned *ret_least)
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

/* How often the last thing may come: perhaps never, then it is not sure to be there. */
static void quantifier(struct reader *reader, size_t size, bool may_be_none)
{
    if (reader->in_run && may_be_none && reader->depth == 0)
        reader->run.len = reader->last_char;
    other(reader);
    emit(reader, reader->text + reader->at, size);
    reader->at += size;
}

static void read_one(struct reader *reader)
{
    unsigned least = 1, ignored;
    size_t size;
    char c = reader->text[reader->at];

    switch (c) {
    case '\\':
        escape(reader);
        return;
    case '[':
        class(reader);
        return;
    case '(':
        group(reader);
        return;
    case '*':
    case '?':
    case '+':
        quantifier(reader, 1, c != '+');
        return;
    case '{':
        size = braces(reader, &least);
        if (size > 0) {
            quantifier(reader, size, least == 0);
            return;
        }
        break;
    case '|':
        reader->no_literal |= reader->depth == 0;
        quantifier(reader, 1, false);
        return;
    case '.':
        reader->scan->needs_utf = true;
        quantifier(reader, 1, false);
        return;
    case '^':
    case '$':
        quantifier(reader, 1, false);
        return;
    case ')':
        reader->depth -= reader->depth > 0;
        quantifier(reader, 1, false);
        return;
    default:
        break;
    }
    size = wildcard_char(reader->text + reader->at, reader->len - reader->at, &ignored);
    emit(reader, reader->text + reader->at, size);
    character(reader, reader->text + reader->at, size);
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
        read_one(&reader);
    if (reader.only_literal && reader.run.len > 0)
        scan->is_literal = true;
    end_run(&reader);
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
