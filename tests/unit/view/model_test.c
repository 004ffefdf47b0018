// SPDX-License-Identifier: Apache-2.0
/* Random lists of rules and paths against a model: it matches texts by trying everything, and has
 * nothing in common with src/view. VIEW_PAIRS is how many pairs are tried. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "check.h"
#include "view/rules.h"

enum { PAIRS = 100000, RULES_MAX = 6, TEXT_SIZE = 128 };

static unsigned long long state;

static unsigned dice(unsigned sides)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(state >> 33) % sides;
}

/* --- the model -------------------------------------------------------------------------------- */

struct model_rule {
    char pattern[TEXT_SIZE]; /* with its slash in front */
    enum view_type type;
    enum view_level level;
    int priority;
};

/* Whether the pattern matches all of the text: both begin with a slash, or are at their end. */
static bool model_glob(const char *pattern, const char *text)
{
    if (strncmp(pattern, "/**", 3) == 0 && (pattern[3] == '/' || pattern[3] == '\0')) {
        if (model_glob(pattern + 3, text))
            return true;
        if (*text != '/')
            return false;
        return model_glob(pattern, text + 1 + strcspn(text + 1, "/"));
    }
    if (*pattern == '\0')
        return *text == '\0';
    if (*pattern == '*')
        return model_glob(pattern + 1, text) ||
               (*text != '\0' && *text != '/' && model_glob(pattern, text + 1));
    if (*pattern == '?')
        return *text != '\0' && *text != '/' && model_glob(pattern + 1, text + 1);
    if (*pattern == '[') /* always two characters here, and perhaps a ! */
        return *text != '\0' && *text != '/' &&
               (pattern[1] == '!' ? *text != pattern[2] && *text != pattern[3]
                                  : *text == pattern[1] || *text == pattern[2]) &&
               model_glob(strchr(pattern, ']') + 1, text + 1);
    return *pattern == *text && model_glob(pattern + 1, text + 1);
}

static bool model_matches_path(const struct model_rule *rule, const char *path)
{
    const char *text = strcmp(path, "/") == 0 ? "" : path;
    const char *pattern = strcmp(rule->pattern, "/") == 0 ? "" : rule->pattern;
    size_t len = strlen(pattern);

    if (rule->type == VIEW_FILE)
        return strcmp(pattern, text) == 0;
    if (rule->type == VIEW_DIRECTORY)
        return strncmp(pattern, text, len) == 0 && (text[len] == '\0' || text[len] == '/');
    return model_glob(pattern, text);
}

/* A rule of level none is about everything below what it matches. */
static bool model_matches(const struct model_rule *rule, const char *path)
{
    char above[TEXT_SIZE];

    (void)snprintf(above, sizeof(above), "%s", path);
    while (!model_matches_path(rule, above)) {
        if (rule->level != VIEW_NONE || strcmp(above, "/") == 0)
            return false;
        *strrchr(above, '/') = '\0';
        if (*above == '\0')
            (void)snprintf(above, sizeof(above), "/");
    }
    return true;
}

/* How specific a pattern is, as numbers of which the first that differs decides. */
static void model_specificity(const struct model_rule *rule, int ret[4])
{
    const char *special = rule->type == VIEW_GLOB ? "*?[" : "";
    bool is_literal = true;
    char copy[TEXT_SIZE], *rest = copy, *part;

    memset(ret, 0, 4 * sizeof(*ret));
    (void)snprintf(copy, sizeof(copy), "%s", rule->pattern + 1);
    while ((part = strsep(&rest, "/"))) {
        bool is_name = *part != '\0' && strpbrk(part, special) == NULL;

        if (*part == '\0')
            continue;
        ret[0] = is_name && rule->type != VIEW_DIRECTORY;
        is_literal = is_literal && is_name;
        ret[1] += is_literal;
        ret[2] += rule->type != VIEW_GLOB || strcmp(part, "**") != 0;
        for (const char *at = part; *at; at++) {
            if (rule->type == VIEW_GLOB && *at == '[')
                at = strchr(at, ']');
            else
                ret[3] += strchr(special, *at) == NULL;
        }
    }
}

/* Returns whether a decides before b, which was written later. */
static bool model_is_before(const struct model_rule *a, const struct model_rule *b)
{
    int left[4], right[4];

    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->type != b->type)
        return a->type > b->type;
    model_specificity(a, left);
    model_specificity(b, right);
    for (int i = 0; i < 4; i++)
        if (left[i] != right[i])
            return left[i] > right[i];
    return true;
}

static int model_decide(const struct model_rule *rules, int count, const char *path)
{
    int best = -1;

    for (int i = 0; i < count; i++)
        if (model_matches(&rules[i], path) &&
            (best < 0 || !model_is_before(&rules[best], &rules[i])))
            best = i;
    return best;
}

/* --- chance ----------------------------------------------------------------------------------- */

static void random_path(char ret[TEXT_SIZE])
{
    static const char *const names[] = { "a", "b", "ab", "ba", "aab", ".a", "b.c" };
    size_t len = 0;

    for (unsigned left = dice(5); left > 0; left--)
        len += (size_t)snprintf(ret + len, TEXT_SIZE - len, "/%s", names[dice(7)]);
    if (len == 0)
        (void)snprintf(ret, TEXT_SIZE, "/");
}

static void random_rule(struct model_rule *ret)
{
    static const char *const parts[] = { "a",  "b",  "ab", "**",    "**",    "*",      "a*",
                                         "*b", "?a", ".*", "*a*b*", "[ab]*", "[!ab]b", "*.c" };
    size_t len = 0;

    *ret = (struct model_rule){ .type = dice(4) > 0 ? VIEW_GLOB : VIEW_DIRECTORY + dice(2),
                                .level = dice(4),
                                .priority = dice(3) == 0 ? (int)dice(3) - 1 : 0 };
    for (unsigned left = 1 + dice(4); left > 0; left--)
        len += (size_t)snprintf(ret->pattern + len, TEXT_SIZE - len, "/%s",
                                parts[dice(ret->type == VIEW_GLOB ? ARRAY_SIZE(parts) : 3)]);
}

static void try_list(unsigned paths)
{
    struct model_rule model[RULES_MAX];
    struct view_rule rules[RULES_MAX];
    cleanup_view_rules struct view_rules *compiled = NULL;
    const int count = 1 + (int)dice(RULES_MAX);
    char path[TEXT_SIZE];
    struct err err = { 0 };

    for (int i = 0; i < count; i++) {
        random_rule(&model[i]);
        rules[i] = (struct view_rule){ .pattern = model[i].pattern,
                                       .type = model[i].type,
                                       .level = model[i].level,
                                       .priority = model[i].priority };
    }
    CHECK(view_rules_compile(rules, (size_t)count, 1, &compiled, &err) == 0, "(%s)", err.msg);
    for (; paths > 0; paths--) {
        struct view_decision got;
        int wanted;

        random_path(path);
        got = view_decide(compiled, path);
        wanted = model_decide(model, count, path);
        CHECK(got.rule == wanted, "(%s: rule %d, wanted %d: '%s' of '%s' ...)", path, got.rule,
              wanted, wanted < 0 ? "" : model[wanted].pattern, model[0].pattern);
        CHECK(got.level == (wanted < 0 ? VIEW_NONE : model[wanted].level));
    }
}

static void decisions_are_those_of_the_model(void)
{
    const char *wanted = getenv("VIEW_PAIRS");
    const unsigned long pairs = wanted ? strtoul(wanted, NULL, 10) : PAIRS;

    state = 1;
    for (unsigned long done = 0; done < pairs; done += 10)
        try_list(10);
}

/* Lists of fewer levels, as random ones nearly always have all. */
static int random_list(struct model_rule model[RULES_MAX], struct view_rule rules[RULES_MAX])
{
    const int count = 1 + (int)dice(RULES_MAX);
    const unsigned kind = dice(3);

    for (int i = 0; i < count; i++) {
        random_rule(&model[i]);
        if (kind == 0)
            model[i].level = dice(2) == 0 ? VIEW_NONE : VIEW_READ;
        if (kind == 1 && i == 0) {
            (void)snprintf(model[i].pattern, TEXT_SIZE, "/**");
            model[i].type = VIEW_GLOB;
            model[i].priority = (int)dice(3);
        }
        rules[i] = (struct view_rule){ .pattern = model[i].pattern,
                                       .type = model[i].type,
                                       .level = model[i].level,
                                       .priority = model[i].priority };
    }
    return count;
}

static void try_levels(unsigned paths, unsigned seen[1 << VIEW_LEVELS])
{
    struct model_rule model[RULES_MAX];
    struct view_rule rules[RULES_MAX];
    cleanup_view_rules struct view_rules *compiled = NULL;
    const int count = random_list(model, rules);
    unsigned levels;
    char path[TEXT_SIZE];
    struct err err = { 0 };
    int first[VIEW_LEVELS];

    CHECK(view_rules_compile(rules, (size_t)count, 1, &compiled, &err) == 0, "(%s)", err.msg);
    levels = view_levels(compiled, first);
    seen[levels]++;
    for (int level = 0; level < VIEW_LEVELS; level++)
        CHECK(first[level] < 0 || model[first[level]].level == (enum view_level)level);
    for (; paths > 0; paths--) {
        int decides;

        random_path(path);
        decides = model_decide(model, count, path);
        CHECK(levels & 1U << (decides < 0 ? VIEW_NONE : model[decides].level), "(%s)", path);
    }
}

static void no_path_has_a_level_that_the_rules_exclude(void)
{
    unsigned seen[1 << VIEW_LEVELS] = { 0 };

    state = 1;
    for (unsigned done = 0; done < PAIRS; done += 10)
        try_levels(10, seen);
    CHECK(seen[VIEW_HAS_NONE | VIEW_HAS_READ] > 100 && seen[VIEW_HAS_WRITE] > 100,
          "(%u lists that can only be read, %u that can only be written)",
          seen[VIEW_HAS_NONE | VIEW_HAS_READ], seen[VIEW_HAS_WRITE]);
}

int main(void)
{
    RUN(decisions_are_those_of_the_model);
    RUN(no_path_has_a_level_that_the_rules_exclude);
    return 0;
}
