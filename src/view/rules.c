// SPDX-License-Identifier: Apache-2.0
#include "view/rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "view/pattern.h"

/* Compiled patterns take a few times the room of their text. */
enum { ARENA_MAX = 16 << 20 };

struct compiled {
    struct view_alternative alternative;
    int rule; /* its index as written */
};

struct view_rules {
    struct arena arena;
    struct view_rule *list; /* as written */
    size_t count;
    size_t bytes;           /* of all patterns */
    struct compiled *order; /* the first that matches decides */
    size_t order_count;
    uint64_t generation;
};

void view_rules_free(struct view_rules *rules)
{
    if (!rules)
        return;
    arena_done(&rules->arena);
    free(rules->list);
    free(rules->order);
    free(rules);
}

static const struct view_rule *rule_of(const struct view_rules *rules, const struct compiled *entry)
{
    return &rules->list[entry->rule];
}

static int entry_compare(const void *left, const void *right, void *data)
{
    const struct compiled *a = left, *b = right;
    const struct view_rule *first = rule_of(data, a), *second = rule_of(data, b);
    int specificity;

    if (first->priority != second->priority)
        return first->priority > second->priority ? -1 : 1;
    if (first->type != second->type)
        return first->type > second->type ? -1 : 1;
    specificity = view_alternative_compare(&a->alternative, &b->alternative);
    return specificity != 0 ? specificity : a->rule - b->rule;
}

static int rules_compile_one(struct view_rules *rules, size_t index, struct err *err)
{
    struct view_alternative *alternatives;
    size_t count;
    int r = view_pattern_compile(&rules->list[index], &rules->arena, &alternatives, &count, err);

    if (r < 0)
        return err_wrap(err, "rule '%.100s'", rules->list[index].pattern);
    if (rules->order_count + count > VIEW_ALTERNATIVES_MAX)
        return err_set(err, ERR_EXHAUSTED, "the braces of the rules have over %d expansions",
                       VIEW_ALTERNATIVES_MAX);
    rules->order = xreallocarray(rules->order, rules->order_count + count, sizeof(*rules->order));
    for (size_t i = 0; i < count; i++)
        rules->order[rules->order_count++] =
            (struct compiled){ .alternative = alternatives[i], .rule = (int)index };
    return 0;
}

/* Checks a rule and appends a copy, whose pattern is in the arena. */
static int rules_add(struct view_rules *rules, const struct view_rule *rule, struct err *err)
{
    char pattern[VIEW_PATTERN_SIZE], *kept;
    struct view_rule *copy = &rules->list[rules->count];
    int r = view_rule_check(rule, pattern, copy, err);

    if (r < 0)
        return r;
    rules->bytes += strlen(pattern);
    if (rules->bytes > VIEW_RULES_BYTES_MAX)
        return err_set(err, ERR_EXHAUSTED, "the patterns are longer than %d bytes together",
                       VIEW_RULES_BYTES_MAX);
    kept = arena_alloc(&rules->arena, strlen(pattern) + 1, 1);
    if (!kept)
        return err_set(err, ERR_EXHAUSTED, "the rules are too large together");
    memcpy(kept, pattern, strlen(pattern) + 1);
    copy->pattern = kept;
    return rules_compile_one(rules, rules->count++, err);
}

int view_rules_compile(const struct view_rule *list, size_t count, uint64_t generation,
                       struct view_rules **ret, struct err *err)
{
    cleanup_view_rules struct view_rules *rules = NULL;
    int r = 0;

    if (count > VIEW_RULES_MAX)
        return err_set(err, ERR_EXHAUSTED, "a list has at most %d rules", VIEW_RULES_MAX);
    rules = xcalloc(1, sizeof(*rules));
    rules->arena.max = ARENA_MAX;
    rules->generation = generation;
    rules->list = xcalloc(count + 1, sizeof(*rules->list));
    for (size_t i = 0; r == 0 && i < count; i++)
        r = rules_add(rules, &list[i], err);
    if (r < 0)
        return r;
    if (rules->order_count > 0)
        qsort_r(rules->order, rules->order_count, sizeof(*rules->order), entry_compare, rules);
    *ret = TAKE_PTR(rules);
    return 0;
}

uint64_t view_rules_generation(const struct view_rules *rules)
{
    return rules->generation;
}

size_t view_rules_count(const struct view_rules *rules)
{
    return rules->count;
}

const struct view_rule *view_rules_at(const struct view_rules *rules, size_t index)
{
    return &rules->list[index];
}

struct view_decision view_decide(const struct view_rules *rules, const char *path)
{
    struct view_decision none = { .level = VIEW_NONE, .rule = -1 };
    struct view_path split;

    if (!view_path_split(path, &split))
        return none;
    for (size_t i = 0; i < rules->order_count; i++) {
        const struct compiled *entry = &rules->order[i];

        if (view_alternative_matches(&entry->alternative, &split))
            return (struct view_decision){ rule_of(rules, entry)->level, entry->rule };
    }
    return none;
}

bool view_may_show_below(const struct view_rules *rules, const char *path)
{
    struct view_path split;

    if (!view_path_split(path, &split))
        return false;
    for (size_t i = 0; i < rules->order_count; i++) {
        enum view_reach reach = view_alternative_reach(&rules->order[i].alternative, &split);
        bool hides = rule_of(rules, &rules->order[i])->level == VIEW_NONE;

        if (hides && reach == VIEW_REACHES_ALL)
            return false;
        if (!hides && reach != VIEW_REACHES_NOTHING)
            return true;
    }
    return false;
}

struct view_decision view_decide_entry(const struct view_rules *rules, const char *path,
                                       bool is_directory)
{
    struct view_decision decision = view_decide(rules, path);

    if (decision.level == VIEW_NONE && is_directory &&
        (strcmp(path, "/") == 0 || view_may_show_below(rules, path)))
        decision.level = VIEW_VIEW;
    return decision;
}

bool view_may_forbid_below(const struct view_rules *rules, const char *path)
{
    struct view_path split;

    if (!view_path_split(path, &split))
        return true;
    for (size_t i = 0; i < rules->order_count; i++) {
        enum view_reach reach = view_alternative_reach(&rules->order[i].alternative, &split);
        bool can_write = rule_of(rules, &rules->order[i])->level == VIEW_WRITE;

        if (!can_write && reach != VIEW_REACHES_NOTHING)
            return true;
        if (can_write && reach == VIEW_REACHES_ALL)
            return false;
    }
    return true;
}

static unsigned level_add(unsigned levels, struct view_decision decision, int *rules)
{
    const unsigned bit = 1U << decision.level;

    if (!(levels & bit))
        rules[decision.level] = decision.rule;
    return levels | bit;
}

unsigned view_levels(const struct view_rules *rules, int ret_rules[static VIEW_LEVELS])
{
    const struct view_decision none = { .level = VIEW_NONE, .rule = -1 };
    struct view_path split;
    unsigned levels;

    for (int level = 0; level < VIEW_LEVELS; level++)
        ret_rules[level] = -1;
    levels = level_add(0, view_decide(rules, "/"), ret_rules);
    (void)view_path_split("/", &split);
    for (size_t i = 0; i < rules->order_count; i++) {
        const struct compiled *entry = &rules->order[i];
        enum view_reach reach = view_alternative_reach(&entry->alternative, &split);

        if (reach != VIEW_REACHES_NOTHING)
            levels = level_add(levels,
                               (struct view_decision){ rule_of(rules, entry)->level, entry->rule },
                               ret_rules);
        if (reach == VIEW_REACHES_ALL)
            return levels;
    }
    return level_add(levels, none, ret_rules);
}
