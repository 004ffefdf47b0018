// SPDX-License-Identifier: Apache-2.0
#include "view/brace.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"

/* Bounds the work: each pair is expanded once in each of a bounded number of expansions. */
enum { BRACES_MAX = 16 };

/* Returns what stands behind a class; the end of the text for a class that has no end. */
static const char *class_skip(const char *at)
{
    at++;
    if (*at == '!' || *at == '^')
        at++;
    if (*at == ']')
        at++;
    while (*at != '\0' && *at != ']')
        at += *at == '\\' && at[1] != '\0' ? 2 : 1;
    return *at == '\0' ? at : at + 1;
}

/* Returns the next special character from here on: a brace, or a comma; else the end. */
static const char *brace_next(const char *at)
{
    while (*at != '\0' && !strchr("{},", *at)) {
        if (*at == '[')
            at = class_skip(at);
        else
            at += *at == '\\' && at[1] != '\0' ? 2 : 1;
    }
    return at;
}

static const char *brace_open(const char *at)
{
    for (at = brace_next(at); *at == ','; at = brace_next(at + 1))
        ;
    return at;
}

/* Returns the comma or brace that ends an option which begins here; the end if there is none. */
static const char *option_end(const char *at)
{
    size_t depth = 0;

    for (at = brace_next(at); *at != '\0'; at = brace_next(at + 1)) {
        if (depth == 0 && *at != '{')
            return at;
        if (*at == '{')
            depth++;
        else if (*at == '}')
            depth--;
    }
    return at;
}

static int braces_check(const char *pattern, struct err *err)
{
    size_t depth = 0, pairs = 0;

    for (const char *at = brace_next(pattern); *at != '\0'; at = brace_next(at + 1)) {
        if (*at == '{' && ++pairs > BRACES_MAX)
            return err_set(err, ERR_INVALID, "a pattern has over %d braces", BRACES_MAX);
        if (*at == '{' && *option_end(at + 1) == '}')
            return err_set(err, ERR_INVALID, "braces in a pattern have no comma; write \\{");
        if (*at == '{')
            depth++;
        else if (*at == '}' && depth-- == 0)
            return err_set(err, ERR_INVALID, "a pattern has '}' without '{'; write \\}");
    }
    if (depth > 0)
        return err_set(err, ERR_INVALID, "a pattern has '{' without '}'");
    return 0;
}

/* Replaces the expansion at `index` by one for each option of its first braces. */
static int braces_open(char **list, size_t index, size_t *count, size_t max, struct arena *arena)
{
    const char *pattern = list[index], *open = brace_open(pattern), *close = open;
    size_t options = 0;

    do {
        close = option_end(close + 1);
        options++;
    } while (*close == ',');
    if (*count - 1 + options > max)
        return -E2BIG;
    memmove(&list[index + options], &list[index + 1], (*count - index - 1) * sizeof(*list));
    *count += options - 1;
    for (const char *option = open + 1; options-- > 0; index++) {
        const char *end = option_end(option);
        size_t before = (size_t)(open - pattern), len = (size_t)(end - option);

        list[index] = arena_alloc(arena, strlen(pattern) + 1, 1);
        if (!list[index])
            return -ENOMEM;
        memcpy(list[index], pattern, before);
        memcpy(list[index] + before, option, len);
        memcpy(list[index] + before + len, close + 1, strlen(close + 1) + 1);
        option = end + 1;
    }
    return 0;
}

int view_braces_expand(const char *pattern, struct arena *arena, char **ret, size_t max,
                       size_t *ret_count, struct err *err)
{
    int r = braces_check(pattern, err);

    if (r < 0)
        return r;
    ret[0] = arena_alloc(arena, strlen(pattern) + 1, 1);
    if (!ret[0])
        return err_set(err, ERR_EXHAUSTED, "the rules are too large together");
    memcpy(ret[0], pattern, strlen(pattern) + 1);
    *ret_count = 1;
    for (size_t i = 0; i < *ret_count;) {
        if (*brace_open(ret[i]) == '\0') {
            i++;
            continue;
        }
        r = braces_open(ret, i, ret_count, max, arena);
        if (r == -E2BIG)
            return err_set(err, ERR_INVALID, "the braces of a pattern have over %zu expansions",
                           max);
        if (r < 0)
            return err_set(err, ERR_EXHAUSTED, "the rules are too large together");
    }
    return 0;
}
