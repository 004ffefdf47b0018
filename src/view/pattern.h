/* Compiled patterns. A pattern with braces is compiled into one alternative for each of its
 * expansions; an alternative is a list of parts, one for each component of a path. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "view/rule.h"

struct arena;
struct err;

enum {
    VIEW_EXPANSIONS_MAX = 64, /* of the braces of one pattern */
    VIEW_PARTS_MAX = 62,      /* of one pattern, so that a set of them fits 64 bits */
    VIEW_PATH_MAX = 4095,
    VIEW_COMPONENTS_MAX = (VIEW_PATH_MAX + 1) / 2,
};

enum view_part_kind {
    VIEW_PART_NAME, /* exactly this name */
    VIEW_PART_GLOB, /* a name that the tokens match */
    VIEW_PART_ANY,  /* any name: "*" */
    VIEW_PART_DEEP, /* any number of names: two stars */
};

struct view_token;

struct view_part {
    enum view_part_kind kind;
    uint16_t len; /* of the name, or number of tokens */
    union {
        const char *name;
        const struct view_token *tokens;
    };
};

struct view_alternative {
    const struct view_part *parts;
    uint64_t deep; /* the bits of those parts that are VIEW_PART_DEEP */
    uint16_t count;
    bool hides; /* of level none: matches everything below what it matches */
};

/* The components of a path, found once for all alternatives. */
struct view_path {
    const char *text;
    uint16_t count;
    struct {
        uint16_t at, len;
    } components[VIEW_COMPONENTS_MAX];
};

/* Returns false for a path that is too long. */
bool view_path_split(const char *text, struct view_path *ret);

/* Checks a pattern and writes its one spelling. */
int view_pattern_check(const char *pattern, char ret[VIEW_PATTERN_SIZE], struct err *err);

/* Returns whether a character of the pattern is special in a glob. */
bool view_pattern_is_glob(const char *pattern);

/* Compiles a checked rule into an array of alternatives; everything lives in the arena. Fails with
 * ERR_INVALID, or ERR_EXHAUSTED if the arena is full. */
int view_pattern_compile(const struct view_rule *rule, struct arena *arena,
                         struct view_alternative **ret, size_t *ret_count, struct err *err);

/* Returns less than, equal to or greater than 0 as a is more, equally or less specific than b. */
int view_alternative_compare(const struct view_alternative *a, const struct view_alternative *b);

/* Returns whether the alternative matches this path. */
bool view_alternative_matches(const struct view_alternative *alternative,
                              const struct view_path *path);

/* How an alternative is about the paths below a directory, without the directory itself. */
enum view_reach {
    VIEW_REACHES_NOTHING,
    VIEW_REACHES_SOME,
    VIEW_REACHES_ALL,
};
enum view_reach view_alternative_reach(const struct view_alternative *alternative,
                                       const struct view_path *directory);
