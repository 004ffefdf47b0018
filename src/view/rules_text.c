// SPDX-License-Identifier: Apache-2.0
/* Lists of rules as text and as JSON. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "view/pattern.h"
#include "view/rules.h"

enum { INPUT_ARENA_MAX = 4 << 20 };

/* Rules as they are read, before they are compiled. */
struct rule_list {
    struct arena arena;
    struct view_rule *items;
    size_t count;
};

static void rule_list_done(struct rule_list *list)
{
    arena_done(&list->arena);
    free(list->items);
}

static int rule_list_add(struct rule_list *list, const struct view_rule *rule, struct err *err)
{
    char *pattern;

    if (list->count == VIEW_RULES_MAX)
        return err_set(err, ERR_EXHAUSTED, "a list has at most %d rules", VIEW_RULES_MAX);
    pattern = arena_alloc(&list->arena, strlen(rule->pattern) + 1, 1);
    if (!pattern)
        return err_set(err, ERR_EXHAUSTED, "the rules are too large together");
    memcpy(pattern, rule->pattern, strlen(rule->pattern) + 1);
    list->items = xreallocarray(list->items, list->count + 1, sizeof(*list->items));
    list->items[list->count] = *rule;
    list->items[list->count++].pattern = pattern;
    return 0;
}

/* --- text ------------------------------------------------------------------------------------ */

static const char *blanks_skip(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at;
}

static int line_parse(const char *at, const char *end, struct rule_list *list, struct err *err)
{
    char line[VIEW_RULE_TEXT_SIZE], pattern[VIEW_PATTERN_SIZE];
    struct view_rule rule;
    int r;

    at = blanks_skip(at, end);
    while (end > at && strchr(" \t\r", end[-1]))
        end--;
    if (at == end || *at == '#')
        return 0;
    if ((size_t)(end - at) >= sizeof(line))
        return err_set(err, ERR_INVALID, "the line is longer than a rule can be");
    memcpy(line, at, (size_t)(end - at));
    line[end - at] = '\0';
    r = view_rule_parse(line, pattern, &rule, err);
    return r < 0 ? r : rule_list_add(list, &rule, err);
}

int view_rules_parse(const char *text, uint64_t generation, struct view_rules **ret,
                     struct err *err)
{
    cleanup_with(rule_list_done) struct rule_list list = { .arena.max = INPUT_ARENA_MAX };
    unsigned line = 1;
    int r;

    for (const char *at = text, *end; *at != '\0'; at = *end == '\n' ? end + 1 : end, line++) {
        end = strchrnul(at, '\n');
        r = line_parse(at, end, &list, err);
        if (r < 0)
            return err_wrap(err, "line %u", line);
    }
    return view_rules_compile(list.items, list.count, generation, ret, err);
}

int view_rules_format(const struct view_rules *rules, struct buf *out)
{
    char text[VIEW_RULE_TEXT_SIZE];
    int r = 0;

    for (size_t i = 0; r == 0 && i < view_rules_count(rules); i++) {
        view_rule_format(view_rules_at(rules, i), text);
        r = buf_printf(out, "%s\n", text);
    }
    return r;
}

/* --- JSON ------------------------------------------------------------------------------------ */

static int priority_from_json(const json_t *object, int32_t *ret, struct err *err)
{
    const json_t *value = json_field(object, "priority");

    if (!value)
        return 0;
    if (!json_is_integer(value) || llabs(json_integer_value(value)) > VIEW_PRIORITY_MAX)
        return err_set(err, ERR_INVALID, "priority is not a number from %d to %d",
                       -VIEW_PRIORITY_MAX, VIEW_PRIORITY_MAX);
    *ret = (int32_t)json_integer_value(value);
    return 0;
}

static int rule_from_json(const json_t *object, struct view_rule *ret, struct err *err)
{
    static const char *const names[] = { "pattern", "type", "level", "priority", NULL };
    const char *pattern = "", *type = "auto", *level = NULL;
    int r;

    if (!json_is_object(object))
        return err_set(err, ERR_INVALID, "a rule is not an object");
    *ret = (struct view_rule){ 0 };
    r = json_only_fields(object, names, err);
    if (r == 0)
        r = json_get_text(object, "pattern", &pattern, err);
    if (r == 0)
        r = json_get_text(object, "type", &type, err);
    if (r == 0)
        r = json_get_text(object, "level", &level, err);
    if (r == 0 && (!*pattern || !level))
        r = err_set(err, ERR_INVALID, "a rule needs pattern and level");
    if (r == 0)
        r = view_type_parse(type, &ret->type, err);
    if (r == 0)
        r = view_level_parse(level, &ret->level, err);
    ret->pattern = pattern;
    return r < 0 ? r : priority_from_json(object, &ret->priority, err);
}

int view_rules_from_json(const json_t *array, uint64_t generation, struct view_rules **ret,
                         struct err *err)
{
    cleanup_with(rule_list_done) struct rule_list list = { .arena.max = INPUT_ARENA_MAX };
    struct view_rule rule = { .pattern = "" };
    int r;

    if (!json_is_array(array))
        return err_set(err, ERR_INVALID, "the rules are not an array");
    for (size_t i = 0; i < json_array_size(array); i++) {
        r = rule_from_json(json_array_get(array, i), &rule, err);
        if (r == 0)
            r = rule_list_add(&list, &rule, err);
        if (r < 0)
            return err_wrap(err, "rule %zu", i + 1);
    }
    return view_rules_compile(list.items, list.count, generation, ret, err);
}

json_t *view_rules_to_json(const struct view_rules *rules)
{
    json_t *array = json_array();

    for (size_t i = 0; i < view_rules_count(rules); i++) {
        const struct view_rule *rule = view_rules_at(rules, i);

        (void)json_array_append_new(
            array, json_pack("{s:s, s:s, s:s, s:i}", "pattern", rule->pattern, "type",
                             view_type_name(rule->type), "level", view_level_name(rule->level),
                             "priority", (int)rule->priority));
    }
    return array;
}
