/* Matches a name against a pattern with *, ?, [...] and backslashes. The time is at most the
 * product of both lengths. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum wildcard_rules {
    WILDCARD_SHELL, /* bash in a UTF-8 locale: ? is a character, an unclosed [ is literal */
    WILDCARD_GIT,   /* .gitignore: ? is a byte, a pattern with an unclosed [ matches nothing */
};

enum wildcard_kind {
    WILDCARD_TEXT,   /* no wildcards */
    WILDCARD_PREFIX, /* text* */
    WILDCARD_SUFFIX, /* *text */
    WILDCARD_MIXED,
    WILDCARD_NOTHING, /* cannot match */
};

struct wildcard {
    enum wildcard_kind kind;
    enum wildcard_rules rules;
    char *text; /* unescaped, except for WILDCARD_MIXED */
    size_t len;
    bool begins_with_dot; /* literally */
};

/* Compiles a pattern, whose length the caller limits; aborts without memory. */
void wildcard_init(struct wildcard *wildcard, enum wildcard_rules rules, const char *text,
                   size_t len);
void wildcard_done(struct wildcard *wildcard);

bool wildcard_matches(const struct wildcard *wildcard, const char *name, size_t len);

/* Returns whether the text has no unescaped wildcards. */
bool wildcard_is_plain(const char *text, size_t len);

/* Returns the length of the [...] at the start of the text; 0 if it is not closed. */
size_t wildcard_bracket(const char *text, size_t len);

/* Decodes the character at text and returns its length. For a byte that is not UTF-8 the length is
 * 1 and *ret is above all characters. len is at least 1. */
size_t wildcard_char(const char *text, size_t len, unsigned *ret);
