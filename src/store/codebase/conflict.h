/* Paths that were changed on both sides, for reports. */
#pragma once

#include <stddef.h>

enum { CONFLICTS_LISTED_MAX = 1000 };

struct conflict_hunk {
    unsigned line; /* of our side, from 1 */
    char *ours, *theirs;
};

struct conflict {
    char *path;
    const char *reason; /* constant */
    struct conflict_hunk *hunks;
    size_t hunk_count;
};

struct conflicts {
    struct conflict *items; /* the first CONFLICTS_LISTED_MAX */
    size_t listed;
    size_t count; /* all */
};

/* Adds a conflict. Returns the item for its hunks, or NULL if it is only counted. */
struct conflict *conflicts_add(struct conflicts *conflicts, const char *path, const char *reason);
void conflicts_done(struct conflicts *conflicts);
