// SPDX-License-Identifier: Apache-2.0
#include "view/rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "view/pattern.h"

static const char *const level_names[] = {
    [VIEW_NONE] = "none", [VIEW_VIEW] = "view", [VIEW_READ] = "read", [VIEW_WRITE] = "write"
};
static const char *const type_names[] = {
    [VIEW_AUTO] = "auto", [VIEW_GLOB] = "glob", [VIEW_DIRECTORY] = "directory", [VIEW_FILE] = "file"
};

const char *view_level_name(enum view_level level)
{
    return level_names[level];
}

int view_level_parse(const char *text, enum view_level *ret, struct err *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(level_names); i++) {
        if (strcmp(text, level_names[i]) == 0) {
            *ret = (enum view_level)i;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, "level '%.40s' is not none, view, read or write", text);
}

const char *view_type_name(enum view_type type)
{
    return type_names[type];
}

int view_type_parse(const char *text, enum view_type *ret, struct err *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(type_names); i++) {
        if (strcmp(text, type_names[i]) == 0) {
            *ret = (enum view_type)i;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, "type '%.40s' is not glob, directory or file", text);
}

static enum view_type type_of_pattern(const char *pattern)
{
    return view_pattern_is_glob(pattern) ? VIEW_GLOB : VIEW_DIRECTORY;
}

int view_rule_check(const struct view_rule *rule, char pattern[VIEW_PATTERN_SIZE],
                    struct view_rule *ret, struct err *err)
{
    int r = view_pattern_check(rule->pattern, pattern, err);

    if (r < 0)
        return r;
    if (rule->priority < -VIEW_PRIORITY_MAX || rule->priority > VIEW_PRIORITY_MAX)
        return err_set(err, ERR_INVALID, "priority %d of rule '%.100s' is not from %d to %d",
                       rule->priority, pattern, -VIEW_PRIORITY_MAX, VIEW_PRIORITY_MAX);
    *ret = *rule;
    ret->pattern = pattern;
    if (ret->type == VIEW_AUTO)
        ret->type = type_of_pattern(pattern);
    return 0;
}

/* Cuts "@PRIORITY" off the level. */
static int priority_parse(char *level, int32_t *ret, struct err *err)
{
    char *at = strchr(level, '@'), *end;
    long value;

    *ret = 0;
    if (!at)
        return 0;
    *at++ = '\0';
    value = strtol(at, &end, 10);
    if (*at == '\0' || *end != '\0' || *at == ' ' || value < -VIEW_PRIORITY_MAX ||
        value > VIEW_PRIORITY_MAX)
        return err_set(err, ERR_INVALID, "priority '%.40s' is not a number from %d to %d", at,
                       -VIEW_PRIORITY_MAX, VIEW_PRIORITY_MAX);
    *ret = (int32_t)value;
    return 0;
}

/* Reads the type in front of a pattern, if there is one, and returns what follows it. */
static const char *type_skip(const char *text, enum view_type *ret)
{
    for (size_t i = VIEW_GLOB; i < ARRAY_SIZE(type_names); i++) {
        size_t len = strlen(type_names[i]);

        if (strncmp(text, type_names[i], len) == 0 && text[len] == ':') {
            *ret = (enum view_type)i;
            return text + len + 1;
        }
    }
    *ret = VIEW_AUTO;
    return text;
}

int view_rule_parse(const char *text, char pattern[VIEW_PATTERN_SIZE], struct view_rule *ret,
                    struct err *err)
{
    const char *equals = strrchr(text, '='), *start;
    char written[VIEW_PATTERN_SIZE], level[40];
    struct view_rule rule;
    int r;

    if (!equals || strlen(equals + 1) >= sizeof(level))
        return err_set(err, ERR_INVALID, "rule '%.100s' is not PATTERN=LEVEL, such as /src/**=read",
                       text);
    (void)snprintf(level, sizeof(level), "%s", equals + 1);
    start = type_skip(text, &rule.type);
    if (equals - start > VIEW_PATTERN_MAX)
        return err_set(err, ERR_INVALID, "a pattern is longer than %d bytes", VIEW_PATTERN_MAX);
    (void)snprintf(written, sizeof(written), "%.*s", (int)(equals - start), start);
    rule.pattern = written;
    r = priority_parse(level, &rule.priority, err);
    if (r == 0)
        r = view_level_parse(level, &rule.level, err);
    if (r < 0)
        return err_wrap(err, "rule '%.100s'", text);
    return view_rule_check(&rule, pattern, ret, err);
}

void view_rule_format(const struct view_rule *rule, char ret[VIEW_RULE_TEXT_SIZE])
{
    bool is_plain = rule->type == type_of_pattern(rule->pattern);
    int len =
        snprintf(ret, VIEW_RULE_TEXT_SIZE, "%s%s%s=%s", is_plain ? "" : view_type_name(rule->type),
                 is_plain ? "" : ":", rule->pattern, view_level_name(rule->level));

    if (rule->priority != 0 && len > 0 && len < VIEW_RULE_TEXT_SIZE)
        (void)snprintf(ret + len, (size_t)(VIEW_RULE_TEXT_SIZE - len), "@%d", rule->priority);
}
