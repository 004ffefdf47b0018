// SPDX-License-Identifier: Apache-2.0
#include "view/pattern.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/utf8.h"
#include "view/brace.h"
#include "view/glob.h"
#include "view/rules.h"

enum { EXPANSIONS_BYTES_MAX = 2 << 20 };

/* --- paths ----------------------------------------------------------------------------------- */

bool view_path_split(const char *text, struct view_path *ret)
{
    const char *at = text;

    ret->text = text;
    ret->count = 0;
    for (;;) {
        const char *end;

        while (*at == '/')
            at++;
        if (*at == '\0')
            return true;
        end = strchrnul(at, '/');
        if (end - text > VIEW_PATH_MAX)
            return false;
        ret->components[ret->count].at = (uint16_t)(at - text);
        ret->components[ret->count++].len = (uint16_t)(end - at);
        at = end;
    }
}

/* Appends the components of a path, each with a slash in front. Fails with -EINVAL for "..". */
static int path_clean(const char *path, char *ret, size_t size)
{
    size_t used = 0;

    for (const char *at = path, *end; *at != '\0'; at = *end == '/' ? end + 1 : end) {
        size_t len;

        end = strchrnul(at, '/');
        len = (size_t)(end - at);
        if (len == 0 || (len == 1 && *at == '.'))
            continue;
        if (len == 2 && at[0] == '.' && at[1] == '.')
            return -EINVAL;
        if (used + 1 + len >= size)
            return -ENAMETOOLONG;
        ret[used++] = '/';
        memcpy(ret + used, at, len);
        used += len;
    }
    if (used == 0)
        ret[used++] = '/';
    ret[used] = '\0';
    return 0;
}

int view_path_normalize(const char *path, char *ret, size_t size)
{
    return size < 2 ? -ENAMETOOLONG : path_clean(path, ret, size);
}

/* --- compiling ------------------------------------------------------------------------------- */

bool view_pattern_is_glob(const char *pattern)
{
    return strpbrk(pattern, "*?[{\\") != NULL;
}

int view_pattern_check(const char *pattern, char ret[VIEW_PATTERN_SIZE], struct err *err)
{
    size_t len = strlen(pattern);
    int r;

    if (len == 0)
        return err_set(err, ERR_INVALID, "a pattern is empty; / is everything");
    if (len > VIEW_PATTERN_MAX)
        return err_set(err, ERR_INVALID, "a pattern is longer than %d bytes", VIEW_PATTERN_MAX);
    if (utf8_valid(pattern, len) != len)
        return err_set(err, ERR_INVALID, "a pattern is not UTF-8");
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)pattern[i] < ' ' || pattern[i] == 0x7f)
            return err_set(err, ERR_INVALID, "a pattern has a control character");
    }
    r = path_clean(pattern, ret, VIEW_PATTERN_SIZE);
    if (r < 0)
        return err_set(err, ERR_INVALID,
                       "pattern '%.100s' has '..'; patterns are relative to the "
                       "mount point",
                       pattern);
    return 0;
}

static int part_compile(const char *text, size_t len, bool is_glob, struct arena *arena,
                        struct view_part *ret, struct err *err)
{
    char *name;

    *ret = (struct view_part){ .kind = VIEW_PART_NAME, .len = (uint16_t)len };
    if (is_glob && len == 2 && memcmp(text, "**", 2) == 0) {
        ret->kind = VIEW_PART_DEEP;
        return 0;
    }
    if (is_glob && len == 1 && *text == '*') {
        ret->kind = VIEW_PART_ANY;
        return 0;
    }
    if (is_glob && len > strcspn(text, "*?[\\")) {
        ret->kind = VIEW_PART_GLOB;
        return view_glob_compile(text, len, arena, &ret->tokens, &ret->len, err);
    }
    name = arena_alloc(arena, len + 1, 1);
    if (!name)
        return err_set(err, ERR_EXHAUSTED, "the rules are too large together");
    memcpy(name, text, len);
    ret->name = name;
    return 0;
}

/* Appends a part. Two parts of two stars in a row mean the same as one. */
static int alternative_add(struct view_alternative *alternative, struct view_part *parts,
                           const struct view_part *part, struct err *err)
{
    if (part->kind == VIEW_PART_DEEP) {
        if (alternative->count > 0 && parts[alternative->count - 1].kind == VIEW_PART_DEEP)
            return 0;
        alternative->deep |= UINT64_C(1) << alternative->count;
    }
    if (alternative->count == VIEW_PARTS_MAX)
        return err_set(err, ERR_INVALID, "a pattern has over %d components", VIEW_PARTS_MAX);
    parts[alternative->count++] = *part;
    return 0;
}

static int alternative_compile(const char *pattern, const struct view_rule *rule,
                               struct arena *arena, struct view_alternative *ret, struct err *err)
{
    static const struct view_part deep = { .kind = VIEW_PART_DEEP };
    struct view_part parts[VIEW_PARTS_MAX], part, *copy;
    int r = 0;

    *ret = (struct view_alternative){ .hides = rule->level == VIEW_NONE };
    for (const char *at = pattern, *end; r == 0 && *at != '\0'; at = *end == '/' ? end + 1 : end) {
        end = strchrnul(at, '/');
        if (end == at)
            continue;
        r = part_compile(at, (size_t)(end - at), rule->type == VIEW_GLOB, arena, &part, err);
        if (r == 0)
            r = alternative_add(ret, parts, &part, err);
    }
    if (r == 0 && rule->type == VIEW_DIRECTORY)
        r = alternative_add(ret, parts, &deep, err);
    if (r < 0)
        return r;
    copy = arena_alloc(arena, (size_t)ret->count + 1, sizeof(*copy));
    if (!copy)
        return err_set(err, ERR_EXHAUSTED, "the rules are too large together");
    if (ret->count > 0)
        memcpy(copy, parts, ret->count * sizeof(*copy));
    ret->parts = copy;
    return 0;
}

int view_pattern_compile(const struct view_rule *rule, struct arena *arena,
                         struct view_alternative **ret, size_t *ret_count, struct err *err)
{
    cleanup_with(arena_done) struct arena texts = ARENA_INIT(EXPANSIONS_BYTES_MAX);
    char *expansions[VIEW_EXPANSIONS_MAX], spelled[VIEW_PATTERN_SIZE];
    const char *pattern = rule->pattern;
    size_t count = 1;
    int r = 0;

    if (rule->type == VIEW_GLOB)
        r = view_braces_expand(pattern, &texts, expansions, VIEW_EXPANSIONS_MAX, &count, err);
    if (r < 0)
        return r;
    *ret = arena_alloc(arena, count, sizeof(**ret));
    if (!*ret)
        return err_set(err, ERR_EXHAUSTED, "the rules are too large together");
    for (size_t i = 0; i < count; i++) {
        spelled[0] = '\0';
        r = view_pattern_check(rule->type == VIEW_GLOB ? expansions[i] : pattern, spelled, err);
        if (r == 0)
            r = alternative_compile(spelled, rule, arena, &(*ret)[i], err);
        if (r < 0)
            return r;
    }
    *ret_count = count;
    return 0;
}

/* --- order ----------------------------------------------------------------------------------- */

struct specificity {
    bool names_last; /* the last component is a name */
    size_t depth;    /* names before the first wildcard */
    size_t parts;    /* components but for two stars */
    size_t letters;  /* characters that are no wildcards */
};

static size_t part_letters(const struct view_part *part)
{
    size_t letters = 0;

    if (part->kind == VIEW_PART_NAME)
        return part->len;
    for (size_t i = 0; part->kind == VIEW_PART_GLOB && i < part->len; i++)
        letters += part->tokens[i].kind == VIEW_TOKEN_CHAR;
    return letters;
}

static struct specificity specificity_of(const struct view_alternative *alternative)
{
    const struct view_part *parts = alternative->parts;
    struct specificity result = { 0 };
    size_t count = alternative->count;

    result.names_last = count > 0 && parts[count - 1].kind == VIEW_PART_NAME;
    while (result.depth < count && parts[result.depth].kind == VIEW_PART_NAME)
        result.depth++;
    for (size_t i = 0; i < count; i++) {
        result.parts += parts[i].kind != VIEW_PART_DEEP;
        result.letters += part_letters(&parts[i]);
    }
    return result;
}

int view_alternative_compare(const struct view_alternative *a, const struct view_alternative *b)
{
    struct specificity left = specificity_of(a), right = specificity_of(b);

    if (left.names_last != right.names_last)
        return left.names_last ? -1 : 1;
    if (left.depth != right.depth)
        return left.depth > right.depth ? -1 : 1;
    if (left.parts != right.parts)
        return left.parts > right.parts ? -1 : 1;
    if (left.letters != right.letters)
        return left.letters > right.letters ? -1 : 1;
    return 0;
}

/* --- matching -------------------------------------------------------------------------------- */

/* A set has bit i if the path so far can be what the first i parts match. Two stars match nothing
 * as well, so the set has the bit behind them too. */
static uint64_t set_close(const struct view_alternative *alternative, uint64_t set)
{
    return set | (set & alternative->deep) << 1;
}

static bool part_matches(const struct view_part *part, const char *name, size_t len)
{
    switch (part->kind) {
    case VIEW_PART_NAME:
        return part->len == len && memcmp(part->name, name, len) == 0;
    case VIEW_PART_GLOB:
        return view_glob_matches(part->tokens, part->len, name, len);
    case VIEW_PART_ANY:
    case VIEW_PART_DEEP:
        return true;
    }
    return false;
}

static uint64_t set_step(const struct view_alternative *alternative, uint64_t set, const char *name,
                         size_t len)
{
    uint64_t next = set & alternative->deep;
    uint64_t left = set & ~alternative->deep & ((UINT64_C(1) << alternative->count) - 1);

    for (; left != 0; left &= left - 1) {
        int i = __builtin_ctzll(left);

        if (part_matches(&alternative->parts[i], name, len))
            next |= UINT64_C(1) << (i + 1);
    }
    return set_close(alternative, next);
}

static bool set_accepts(const struct view_alternative *alternative, uint64_t set)
{
    return (set >> alternative->count & 1) != 0;
}

/* Returns the set behind all components of the path. If the path or, for a rule that hides, a
 * directory above it is matched, *ret_matches is set. */
static uint64_t set_walk(const struct view_alternative *alternative, const struct view_path *path,
                         bool *ret_matches)
{
    uint64_t set = set_close(alternative, 1);

    *ret_matches = alternative->hides && set_accepts(alternative, set);
    for (size_t i = 0; i < path->count && set != 0 && !*ret_matches; i++) {
        set = set_step(alternative, set, path->text + path->components[i].at,
                       path->components[i].len);
        *ret_matches = alternative->hides && set_accepts(alternative, set);
    }
    *ret_matches = *ret_matches || set_accepts(alternative, set);
    return set;
}

bool view_alternative_matches(const struct view_alternative *alternative,
                              const struct view_path *path)
{
    bool matches;

    (void)set_walk(alternative, path, &matches);
    return matches;
}

/* Returns whether the parts from `from` on match every path of one or more components. */
static bool parts_match_all(const struct view_alternative *alternative, size_t from)
{
    size_t left = alternative->count - from;

    return left > 0 && alternative->parts[from].kind == VIEW_PART_DEEP &&
           (left == 1 || (left == 2 && alternative->parts[from + 1].kind == VIEW_PART_ANY));
}

enum view_reach view_alternative_reach(const struct view_alternative *alternative,
                                       const struct view_path *directory)
{
    bool matches;
    uint64_t set = set_walk(alternative, directory, &matches);
    enum view_reach reach = VIEW_REACHES_NOTHING;

    if (matches && alternative->hides)
        return VIEW_REACHES_ALL;
    for (size_t i = 0; i < alternative->count; i++) {
        if ((set >> i & 1) == 0)
            continue;
        if (parts_match_all(alternative, i))
            return VIEW_REACHES_ALL;
        reach = VIEW_REACHES_SOME;
    }
    return reach;
}
