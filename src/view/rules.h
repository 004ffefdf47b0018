/* A list of rules, compiled: which level a path has, and which rule decides.
 *
 * The first rule that matches decides, in the order of priority, type, specificity, and then as
 * written. Without a match the level is none. A rule of level none hides what it matches and
 * everything below that. A directory whose own level is none is still there, and can be traversed
 * and listed, while something below it may be seen.
 *
 * A compiled list never changes: threads may share it. Paths are relative to the mount point, begin
 * with a slash and have no empty, "." or ".." component; "/" is the mount point. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "view/rule.h"

struct buf;
struct err;
struct view_rules;

enum {
    VIEW_RULES_MAX = 1000,
    VIEW_RULES_BYTES_MAX = 64 << 10, /* of all patterns */
    VIEW_ALTERNATIVES_MAX = 4096,    /* of all rules, after their braces are expanded */
    VIEW_TEXT_MAX = VIEW_RULES_BYTES_MAX + VIEW_RULES_MAX * 64,
};

struct view_decision {
    enum view_level level;
    int rule; /* the index of the deciding rule in the list as written; -1: none matches */
};

/* Compiles a list, which is checked and copied. Fails with ERR_INVALID for a rule that cannot be
 * compiled and with ERR_EXHAUSTED beyond the limits. The generation is a number of the caller's
 * that distinguishes this list from those before it. */
int view_rules_compile(const struct view_rule *list, size_t count, uint64_t generation,
                       struct view_rules **ret, struct err *err);

/* Do the same from text, one rule a line with empty lines and comments (#), and from a JSON array
 * of objects with "pattern", "level", and perhaps "type" and "priority". */
int view_rules_parse(const char *text, uint64_t generation, struct view_rules **ret,
                     struct err *err);
int view_rules_from_json(const json_t *array, uint64_t generation, struct view_rules **ret,
                         struct err *err);

/* Write what the functions above read. */
int view_rules_format(const struct view_rules *rules, struct buf *out);
json_t *view_rules_to_json(const struct view_rules *rules);

void view_rules_free(struct view_rules *rules);
DEFINE_CLEANUP(view_rules_free, struct view_rules *);
#define cleanup_view_rules cleanup_with(view_rules_free_slot)

uint64_t view_rules_generation(const struct view_rules *rules);
size_t view_rules_count(const struct view_rules *rules);
/* Returns a rule by its index in the list as written. */
const struct view_rule *view_rules_at(const struct view_rules *rules, size_t index);

/* Returns the level of a path, and the rule that decides. A path of over 4095 bytes has level none.
 */
struct view_decision view_decide(const struct view_rules *rules, const char *path);

/* Returns whether anything below this directory may be seen, whatever exists there: the directory
 * must then be there as well. "/" is always there. */
bool view_may_show_below(const struct view_rules *rules, const char *path);

/* Returns the level that a path shows: that of view_decide, but view for a directory that is there
 * because something below it may be seen. */
struct view_decision view_decide_entry(const struct view_rules *rules, const char *path,
                                       bool is_directory);

/* Returns whether anything below this directory, at any depth and whatever exists there, may have a
 * level below write. False: each new name in it may be made and written. */
bool view_may_forbid_below(const struct view_rules *rules, const char *path);

/* The levels that paths may have, whatever exists, as a set of bits. */
enum {
    VIEW_HAS_NONE = 1 << VIEW_NONE,
    VIEW_HAS_VIEW = 1 << VIEW_VIEW,
    VIEW_HAS_READ = 1 << VIEW_READ,
    VIEW_HAS_WRITE = 1 << VIEW_WRITE,
    VIEW_LEVELS = VIEW_WRITE + 1,
};

/* Returns that set. A level is only absent if no path can have it. ret_rules[level] is the first
 * rule that gives a level; -1: none does, and paths that no rule matches have it. */
unsigned view_levels(const struct view_rules *rules, int ret_rules[static VIEW_LEVELS]);

/* Writes the one spelling of a path, "/a/b" for "a//b/." or "/a/b/". Fails with -EINVAL for "..",
 * and with -ENAMETOOLONG. */
int view_path_normalize(const char *path, char *ret, size_t size);
