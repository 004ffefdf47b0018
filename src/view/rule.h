/* One rule about paths: pattern, type, level and priority. docs/permissions.md has the language.
 *
 * As text, a rule is [TYPE:]PATTERN=LEVEL[@PRIORITY], for example /src/a?.c=write@100. Patterns
 * are relative to the mount point; the leading slash may be left out. */
#pragma once

#include <stdint.h>

struct err;

enum {
    VIEW_PATTERN_MAX = 1024,                  /* bytes */
    VIEW_PATTERN_SIZE = VIEW_PATTERN_MAX + 2, /* with the slash that it may lack, and NUL */
    VIEW_PRIORITY_MAX = 1000000,
    VIEW_RULE_TEXT_SIZE = VIEW_PATTERN_MAX + 64,
};

enum view_level {
    VIEW_NONE,  /* does not exist */
    VIEW_VIEW,  /* has attributes and is listed */
    VIEW_READ,  /* has contents */
    VIEW_WRITE, /* can be changed */
};

/* In the order of strength: of two rules of one priority, the type with the larger value wins. */
enum view_type {
    VIEW_AUTO,      /* a glob if the pattern has wildcards, else a directory; only in input */
    VIEW_GLOB,      /* what the pattern matches */
    VIEW_DIRECTORY, /* this path and all below it; no character is special */
    VIEW_FILE,      /* this path; no character is special */
};

struct view_rule {
    const char *pattern; /* begins with a slash once the rule was checked */
    enum view_type type;
    enum view_level level;
    int32_t priority; /* the largest wins */
};

/* Returns "none", "view", "read", "write". */
const char *view_level_name(enum view_level level);
/* Fails with ERR_INVALID. */
int view_level_parse(const char *text, enum view_level *ret, struct err *err);

/* Returns "auto", "glob", "directory", "file". */
const char *view_type_name(enum view_type type);
/* Fails with ERR_INVALID. */
int view_type_parse(const char *text, enum view_type *ret, struct err *err);

/* Writes a rule in its one spelling: the pattern gets its leading slash and loses what means
 * nothing, the type becomes one of the three. The result points into `pattern`. Fails with
 * ERR_INVALID for what cannot be compiled. */
int view_rule_check(const struct view_rule *rule, char pattern[VIEW_PATTERN_SIZE],
                    struct view_rule *ret, struct err *err);

/* Parses the text of a rule and checks it. The result points into `pattern`. */
int view_rule_parse(const char *text, char pattern[VIEW_PATTERN_SIZE], struct view_rule *ret,
                    struct err *err);

/* Writes a checked rule so that view_rule_parse reads the same one. */
void view_rule_format(const struct view_rule *rule, char ret[VIEW_RULE_TEXT_SIZE]);
