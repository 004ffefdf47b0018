// SPDX-License-Identifier: Apache-2.0
#include "tools/search/glob_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "tools/search/braces.h"
#include "tools/search/wildcard.h"

struct part {
    struct wildcard wildcard;
    bool is_any; /* ** */
    bool is_last;
};

struct glob_set {
    struct part *parts; /* of all alternatives, concatenated */
    size_t part_count;
    uint32_t starts[BRACES_MAX];
    size_t start_count;
    bool *seen; /* by part; used while states are collected */
    bool hidden;
    char *base;
};

/* Returns the component at *at, and advances *at past it and its slashes. */
static const char *next_component(const char *text, size_t len, size_t *at, size_t *ret_len)
{
    const char *start = text + *at;

    while (*at < len && text[*at] != '/')
        ++*at;
    *ret_len = (size_t)(text + *at - start);
    while (*at < len && text[*at] == '/')
        ++*at;
    return start;
}

/* Returns the length of the common base of all alternatives: components without wildcards, except
 * the last. */
static size_t common_base(const struct braces *braces)
{
    const char *text = braces->at[0];
    size_t len = braces->lens[0], base = 0, at = 0;

    while (at < len && text[at] == '/')
        at++;
    base = at;
    while (at < len) {
        size_t size;
        const char *part = next_component(text, len, &at, &size);

        if (at == len || text[at - 1] != '/' || !wildcard_is_plain(part, size))
            break;
        base = at;
    }
    for (size_t i = 1; i < braces->count && base > 0; i++) {
        size_t same = 0;

        while (same < base && same < braces->lens[i] && braces->at[i][same] == text[same])
            same++;
        if (same == base && braces->lens[i] > base)
            continue;
        base = same < base ? same : base - 1;
        while (base > 0 && text[base - 1] != '/')
            base--;
    }
    return base;
}

static bool name_equals(const char *part, size_t len, const char *name)
{
    return len == strlen(name) && memcmp(part, name, len) == 0;
}

/* Appends the parts of one alternative. */
static const char *set_add_parts(struct glob_set *set, const char *text, size_t len)
{
    size_t first = set->part_count;

    if (len == 0)
        return NULL; /* an alternative may be empty, as in a shell */
    for (size_t at = 0; at < len;) {
        size_t size;
        const char *part = next_component(text, len, &at, &size);
        struct part *new = &set->parts[set->part_count];

        if (size == 0 || (name_equals(part, size, ".") && at < len))
            continue;
        if (name_equals(part, size, ".."))
            return "'..' is allowed only at the start of a pattern, before any wildcard.";
        new->is_any = name_equals(part, size, "**");
        if (new->is_any && set->part_count > first &&new[-1].is_any)
            continue;
        wildcard_init(&new->wildcard, WILDCARD_SHELL, part, size);
        set->part_count++;
    }
    if (text[len - 1] == '/')
        return "The pattern ends with a slash, but glob finds only files: end it with /* or /**.";
    if (set->part_count == first)
        return "The pattern names no file.";
    set->parts[set->part_count - 1].is_last = true;
    set->starts[set->start_count++] = (uint32_t)first;
    return NULL;
}

static char *unescaped(const char *text, size_t len)
{
    char *ret = xcalloc(1, len + 1);
    size_t to = 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\\' && i + 1 < len)
            i++;
        ret[to++] = text[i];
    }
    return ret;
}

static size_t count_parts(const struct braces *braces)
{
    size_t ret = braces->count;

    for (size_t i = 0; i < braces->count; i++)
        for (size_t j = 0; j < braces->lens[i]; j++)
            ret += braces->at[i][j] == '/';
    return ret;
}

static const char *set_compile(struct glob_set *set, const struct braces *braces)
{
    size_t base = common_base(braces), count = count_parts(braces);

    set->base = unescaped(braces->at[0], base);
    set->parts = xcalloc(count, sizeof(*set->parts));
    set->seen = xcalloc(count, sizeof(*set->seen));
    for (size_t i = 0; i < braces->count; i++) {
        const char *why = set_add_parts(set, braces->at[i] + base, braces->lens[i] - base);

        if (why)
            return why;
    }
    return set->start_count > 0 ? NULL : "The pattern names no file.";
}

struct glob_set *glob_set_new(const char *pattern, size_t len, bool hidden, const char **ret_why)
{
    cleanup_with(braces_done) struct braces braces = { 0 };
    struct glob_set *set;

    *ret_why = NULL;
    if (len == 0)
        *ret_why = "The pattern is empty.";
    else if (len > GLOB_SET_TEXT_MAX)
        *ret_why = "The pattern is longer than 4096 bytes.";
    else if (memchr(pattern, '\0', len))
        *ret_why = "The pattern contains a NUL byte.";
    else if (braces_expand(pattern, len, &braces) < 0)
        *ret_why = "The braces of the pattern expand to more than 1024 patterns.";
    if (*ret_why)
        return NULL;

    set = xcalloc(1, sizeof(*set));
    set->hidden = hidden;
    *ret_why = set_compile(set, &braces);
    if (*ret_why) {
        glob_set_free(set);
        return NULL;
    }
    return set;
}

void glob_set_free(struct glob_set *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->part_count; i++)
        wildcard_done(&set->parts[i].wildcard);
    free(set->parts);
    free(set->seen);
    free(set->base);
    free(set);
}

const char *glob_set_base(const struct glob_set *set)
{
    return set->base;
}

static struct glob_states *states_new(const struct glob_set *set)
{
    return xcalloc(1, sizeof(struct glob_states) + set->part_count * sizeof(uint32_t));
}

/* Adds a state, and the following ones if ** matches no directory. */
static void states_add(struct glob_set *set, struct glob_states *states, uint32_t at)
{
    for (;; at++) {
        if (set->seen[at])
            return;
        set->seen[at] = true;
        states->at[states->count++] = at;
        if (!set->parts[at].is_any || set->parts[at].is_last)
            return;
    }
}

/* Clears the marks and shrinks the memory; returns NULL when there are no states. */
static struct glob_states *states_finish(struct glob_set *set, struct glob_states *states)
{
    struct glob_states *smaller;

    for (size_t i = 0; i < states->count; i++)
        set->seen[states->at[i]] = false;
    if (states->count == 0) {
        free(states);
        return NULL;
    }
    smaller = realloc(states, sizeof(*states) + states->count * sizeof(uint32_t));
    return smaller ? smaller : states;
}

struct glob_states *glob_set_start(struct glob_set *set)
{
    struct glob_states *states = states_new(set);

    for (size_t i = 0; i < set->start_count; i++)
        states_add(set, states, set->starts[i]);
    return states_finish(set, states);
}

static bool part_may_match(const struct glob_set *set, const struct part *part, const char *name)
{
    return set->hidden || name[0] != '.' || (!part->is_any && part->wildcard.begins_with_dot);
}

struct glob_states *glob_set_enter(struct glob_set *set, const struct glob_states *states,
                                   const char *name, size_t len, bool is_link)
{
    struct glob_states *ret = states_new(set);

    for (size_t i = 0; i < states->count; i++) {
        uint32_t at = states->at[i];
        const struct part *part = &set->parts[at];

        if (!part_may_match(set, part, name))
            continue;
        if (part->is_any && !is_link)
            states_add(set, ret, at);
        else if (!part->is_any && !part->is_last && wildcard_matches(&part->wildcard, name, len))
            states_add(set, ret, at + 1);
    }
    return states_finish(set, ret);
}

bool glob_set_accepts(const struct glob_set *set, const struct glob_states *states,
                      const char *name, size_t len)
{
    for (size_t i = 0; i < states->count; i++) {
        const struct part *part = &set->parts[states->at[i]];

        if (part->is_last && part_may_match(set, part, name) &&
            (part->is_any || wildcard_matches(&part->wildcard, name, len)))
            return true;
    }
    return false;
}

bool glob_set_matches_path(struct glob_set *set, const char *path)
{
    struct glob_states *states;
    size_t len = strlen(path), at = strlen(set->base);
    bool ret = false;

    if (strncmp(path, set->base, at) != 0)
        return false;
    states = glob_set_start(set);

    while (states && at < len) {
        size_t size;
        const char *name = next_component(path, len, &at, &size);
        struct glob_states *next;

        if (at == len) {
            ret = glob_set_accepts(set, states, name, size);
            break;
        }
        next = glob_set_enter(set, states, name, size, false);
        free(states);
        states = next;
    }
    free(states);
    return ret;
}
