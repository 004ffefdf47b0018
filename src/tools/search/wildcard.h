/* One name against one pattern: *, ?, [...] and backslashes, in time that no pattern makes more
 * than the product of both lengths. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum wildcard_rules {
    WILDCARD_SHELL, /* as bash in a UTF-8 locale: ? is a character, a lone [ is itself */
    WILDCARD_GIT,   /* as .gitignore: ? is a byte, a pattern with a lone [ matches nothing */
};

enum wildcard_kind {
    WILDCARD_TEXT,   /* no wildcard at all */
    WILDCARD_PREFIX, /* text* */
    WILDCARD_SUFFIX, /* *text */
    WILDCARD_MIXED,
    WILDCARD_NOTHING, /* cannot match */
};

struct wildcard {
    enum wildcard_kind kind;
    enum wildcard_rules rules;
    char *text; /* without backslashes, unless it is mixed */
    size_t len;
    bool begins_with_dot; /* in so many words */
};

/* Aborts when memory is out: whoever makes patterns bounds them. */
void wildcard_init(struct wildcard *wildcard, enum wildcard_rules rules, const char *text,
                   size_t len);
void wildcard_done(struct wildcard *wildcard);

bool wildcard_matches(const struct wildcard *wildcard, const char *name, size_t len);

/* Whether the text has no wildcards, escaped ones apart. */
bool wildcard_is_plain(const char *text, size_t len);

/* The length of the [...] that the text begins with; 0 when nothing closes it. */
size_t wildcard_bracket(const char *text, size_t len);

/* The character at text: its length, 1 for a byte that is not UTF-8; *ret is then above all
 * characters. len is at least 1. */
size_t wildcard_char(const char *text, size_t len, unsigned *ret);
