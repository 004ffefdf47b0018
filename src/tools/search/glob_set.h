/* A glob pattern for paths, matched during a walk as a nondeterministic automaton. The states of a
 * directory are the parts of the pattern that can match the names in it. There are at most as many
 * states as parts, so the number of ** does not matter. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct glob_set;

enum { GLOB_SET_TEXT_MAX = 4096 };

struct glob_states {
    size_t count;
    uint32_t at[];
};

/* Compiles a pattern. With `hidden`, wildcards also match names that start with a dot. Returns NULL
 * and a sentence in *ret_why for an invalid pattern. */
struct glob_set *glob_set_new(const char *pattern, size_t len, bool hidden, const char **ret_why);
void glob_set_free(struct glob_set *set);

/* Returns the directories without wildcards at the start of the pattern, for example "src/lib"; ""
 * for none, "/..." for an absolute pattern. The states start below it. */
const char *glob_set_base(const struct glob_set *set);

/* Returns the states of the start directory; the caller frees them. */
struct glob_states *glob_set_start(struct glob_set *set);

/* Returns the states of a subdirectory, which the caller frees, or NULL when nothing in it can
 * match.
 * ** does not follow links. */
struct glob_states *glob_set_enter(struct glob_set *set, const struct glob_states *states,
                                   const char *name, size_t len, bool is_link);

/* Returns whether a file of this name matches. */
bool glob_set_accepts(const struct glob_set *set, const struct glob_states *states,
                      const char *name, size_t len);

/* Returns whether a path relative to the start directory matches. */
bool glob_set_matches_path(struct glob_set *set, const char *path);
