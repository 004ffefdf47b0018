/* A glob pattern for paths, braces expanded, and how far down a tree it has matched. A directory's
 * states say which parts of the pattern may come next below it; there are never more of them than
 * the pattern has parts, so ** costs nothing extra however often it stands there. */
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

/* `hidden`: wildcards match names that begin with a dot too. NULL with *ret_why, a sentence, when
 * the pattern is none. */
struct glob_set *glob_set_new(const char *pattern, size_t len, bool hidden, const char **ret_why);
void glob_set_free(struct glob_set *set);

/* The directories that the pattern begins with in so many words, as "src/lib"; "" for none, "/..."
 * for a pattern that does not depend on where it is looked for. The states begin below it. */
const char *glob_set_base(const struct glob_set *set);

/* To be freed. */
struct glob_states *glob_set_start(struct glob_set *set);

/* Below a directory of this name; NULL when nothing there can match. ** does not go through links.
 */
struct glob_states *glob_set_enter(struct glob_set *set, const struct glob_states *states,
                                   const char *name, size_t len, bool is_link);

/* Whether a file of this name matches. */
bool glob_set_accepts(const struct glob_set *set, const struct glob_states *states,
                      const char *name, size_t len);

/* Whether a path matches as a whole, from the set's start. */
bool glob_set_matches_path(struct glob_set *set, const char *path);
