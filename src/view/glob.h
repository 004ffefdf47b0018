/* Matches one name against one component of a pattern. Characters are those of UTF-8; a byte that
 * belongs to none is a character of its own, which only *, ? and negated classes match. Takes time
 * in proportion to the product of both lengths at most. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;

enum view_token_kind {
    VIEW_TOKEN_CHAR,
    VIEW_TOKEN_ONE,   /* ? */
    VIEW_TOKEN_STAR,  /* * */
    VIEW_TOKEN_CLASS, /* [a-z], [!a-z] */
};

struct view_range {
    uint32_t first, last;
};

struct view_token {
    enum view_token_kind kind;
    uint32_t character;
    bool is_negated;
    uint16_t range_count;
    const struct view_range *ranges;
};

/* Compiles a component, which holds no slash and no braces. Fails with ERR_INVALID. */
int view_glob_compile(const char *text, size_t len, struct arena *arena,
                      const struct view_token **ret, uint16_t *ret_count, struct err *err);

bool view_glob_matches(const struct view_token *tokens, size_t count, const char *name, size_t len);
