// SPDX-License-Identifier: Apache-2.0
#include "tools/search/wildcard.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"
#include "base/xalloc.h"

static const size_t NOWHERE = (size_t)-1;
enum { BAD_BYTE = 0x110000 };

size_t wildcard_char(const char *text, size_t len, unsigned *ret)
{
    size_t size = utf8_char(text, len);

    if (size <= 1) {
        *ret = (unsigned char)*text + (size == 0 ? BAD_BYTE : 0);
        return 1;
    }
    *ret = (unsigned char)*text & (0xffU >> (size + 1));
    for (size_t i = 1; i < size; i++)
        *ret = *ret << 6 | ((unsigned char)text[i] & 0x3fU);
    return size;
}

static size_t next_char(enum wildcard_rules rules, const char *text, size_t len, unsigned *ret)
{
    if (rules == WILDCARD_SHELL)
        return wildcard_char(text, len, ret);
    *ret = (unsigned char)*text;
    return 1;
}

static bool in_class(const char *name, size_t len, unsigned c)
{
    static const struct {
        const char *name;
        int (*is)(int);
    } classes[] = { { "alnum", isalnum }, { "alpha", isalpha }, { "blank", isblank },
                    { "cntrl", iscntrl }, { "digit", isdigit }, { "graph", isgraph },
                    { "lower", islower }, { "print", isprint }, { "punct", ispunct },
                    { "space", isspace }, { "upper", isupper }, { "xdigit", isxdigit } };

    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
        if (strlen(classes[i].name) == len && memcmp(classes[i].name, name, len) == 0)
            return c < 0x80 && classes[i].is((int)c) != 0;
    return false;
}

/* Returns the length of [:name:] at text, or 0. */
static size_t class_length(const char *text, size_t len)
{
    if (len < 4 || text[0] != '[' || text[1] != ':')
        return 0;
    for (size_t i = 2; i + 1 < len; i++) {
        if (text[i] == ':' && text[i + 1] == ']')
            return i + 2;
        if (!isalpha((unsigned char)text[i]))
            return 0;
    }
    return 0;
}

/* Returns one end of a range, without its backslash, and advances *at. */
static unsigned range_end(enum wildcard_rules rules, const char *text, size_t len, size_t *at)
{
    unsigned c;

    if (text[*at] == '\\' && *at + 1 < len)
        ++*at;
    *at += next_char(rules, text + *at, len - *at, &c);
    return c;
}

/* Tests whether c is in the [...] at text. Returns its length, or 0 if it is not closed. */
static size_t bracket_match(enum wildcard_rules rules, const char *text, size_t len, unsigned c,
                            bool *ret)
{
    size_t at = 1;
    bool is_negated = at < len && (text[at] == '!' || text[at] == '^'), found = false;

    at += is_negated;
    for (size_t first = at; at < len && (text[at] != ']' || at == first);) {
        size_t class = class_length(text + at, len - at);
        unsigned low, high;

        if (class > 0) {
            found |= in_class(text + at + 2, class - 4, c);
            at += class;
            continue;
        }
        low = high = range_end(rules, text, len, &at);
        if (at + 1 < len && text[at] == '-' && text[at + 1] != ']') {
            at++;
            high = range_end(rules, text, len, &at);
        }
        found |= low <= c && c <= high;
    }
    if (at >= len)
        return 0;
    *ret = found != is_negated;
    return at + 1;
}

/* Matches one element of the pattern, which is not a star, against the start of the name; returns
 * the lengths of both. */
static bool wildcard_step(const struct wildcard *wildcard, size_t at, const char *name, size_t len,
                          size_t *ret_pattern, size_t *ret_name)
{
    const char *text = wildcard->text + at;
    size_t left = wildcard->len - at;
    bool found = false;
    unsigned c;

    *ret_pattern = 1;
    *ret_name = next_char(wildcard->rules, name, len, &c);
    if (*text == '?')
        return true;
    if (*text == '[') {
        size_t length = bracket_match(wildcard->rules, text, left, c, &found);

        if (length > 0) {
            *ret_pattern = length;
            return found;
        }
    }
    *ret_name = 1;
    if (*text == '\\' && left > 1) {
        *ret_pattern = 2;
        text++;
    }
    return *text == *name;
}

/* Backtracks only to the last star: an earlier one could only make that one match less. */
static bool mixed_matches(const struct wildcard *wildcard, const char *name, size_t len)
{
    size_t at = 0, i = 0, star = NOWHERE, star_i = 0;

    while (i < len) {
        size_t of_pattern, of_name;
        unsigned c;

        if (at < wildcard->len && wildcard->text[at] == '*') {
            star = ++at;
            star_i = i;
            continue;
        }
        if (at < wildcard->len &&
            wildcard_step(wildcard, at, name + i, len - i, &of_pattern, &of_name)) {
            at += of_pattern;
            i += of_name;
            continue;
        }
        if (star == NOWHERE)
            return false;
        star_i += next_char(wildcard->rules, name + star_i, len - star_i, &c);
        i = star_i;
        at = star;
    }
    while (at < wildcard->len && wildcard->text[at] == '*')
        at++;
    return at == wildcard->len;
}

bool wildcard_matches(const struct wildcard *wildcard, const char *name, size_t len)
{
    switch (wildcard->kind) {
    case WILDCARD_TEXT:
        return len == wildcard->len && memcmp(name, wildcard->text, len) == 0;
    case WILDCARD_PREFIX:
        return len >= wildcard->len && memcmp(name, wildcard->text, wildcard->len) == 0;
    case WILDCARD_SUFFIX:
        return len >= wildcard->len &&
               memcmp(name + len - wildcard->len, wildcard->text, wildcard->len) == 0;
    case WILDCARD_MIXED:
        return mixed_matches(wildcard, name, len);
    case WILDCARD_NOTHING:
        break;
    }
    return false;
}

bool wildcard_is_plain(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\\')
            i++;
        else if (text[i] == '*' || text[i] == '?' || text[i] == '[')
            return false;
    }
    return true;
}

size_t wildcard_bracket(const char *text, size_t len)
{
    bool ignored;

    return bracket_match(WILDCARD_GIT, text, len, 0, &ignored);
}

static bool has_open_bracket(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\\') {
            i++;
        } else if (text[i] == '[') {
            size_t length = wildcard_bracket(text + i, len - i);

            if (length == 0)
                return true;
            i += length - 1;
        }
    }
    return false;
}

static void wildcard_unescape(struct wildcard *wildcard)
{
    size_t to = 0;

    for (size_t i = 0; i < wildcard->len; i++) {
        if (wildcard->text[i] == '\\' && i + 1 < wildcard->len)
            i++;
        wildcard->text[to++] = wildcard->text[i];
    }
    wildcard->len = to;
}

/* Returns whether the text ends with an unescaped backslash. */
static bool ends_in_escape(const char *text, size_t len)
{
    size_t count = 0;

    while (count < len && text[len - 1 - count] == '\\')
        count++;
    return count % 2 == 1;
}

void wildcard_init(struct wildcard *wildcard, enum wildcard_rules rules, const char *text,
                   size_t len)
{
    *wildcard = (struct wildcard){ .kind = WILDCARD_MIXED, .rules = rules };
    wildcard->begins_with_dot =
        len > 0 && (text[0] == '.' || (len > 1 && text[0] == '\\' && text[1] == '.'));
    if (rules == WILDCARD_GIT && (ends_in_escape(text, len) || has_open_bracket(text, len)))
        wildcard->kind = WILDCARD_NOTHING;
    else if (wildcard_is_plain(text, len))
        wildcard->kind = WILDCARD_TEXT;
    else if (text[0] == '*' && wildcard_is_plain(text + 1, len - 1))
        wildcard->kind = WILDCARD_SUFFIX;
    else if (text[len - 1] == '*' && wildcard_is_plain(text, len - 1) &&
             !ends_in_escape(text, len - 1))
        wildcard->kind = WILDCARD_PREFIX;

    if (wildcard->kind == WILDCARD_SUFFIX)
        text++;
    if (wildcard->kind == WILDCARD_SUFFIX || wildcard->kind == WILDCARD_PREFIX)
        len--;
    wildcard->text = xcalloc(1, len + 1);
    memcpy(wildcard->text, text, len);
    wildcard->len = len;
    if (wildcard->kind != WILDCARD_MIXED)
        wildcard_unescape(wildcard);
}

void wildcard_done(struct wildcard *wildcard)
{
    free(wildcard->text);
    wildcard->text = NULL;
}
