/* Paths that were changed on both sides, for reports. */
#pragma once

#include <stddef.h>

struct text_hunk;

enum {
    CONFLICTS_LISTED_MAX = 1000,
    CONFLICT_HUNKS_MAX = 100,
    CONFLICTS_TEXT_MAX = 1 << 20, /* bytes of all hunks together */
};

struct conflict_hunk {
    unsigned line;       /* of our side, from 1 on */
    char *ours, *theirs; /* UTF-8 */
};

struct conflict {
    char *path;
    const char *reason;          /* constant */
    struct conflict_hunk *hunks; /* the first CONFLICT_HUNKS_MAX, as far as there is room */
    size_t hunk_count;
};

struct conflicts {
    struct conflict *items; /* the first CONFLICTS_LISTED_MAX */
    size_t listed;
    size_t count; /* all */
    size_t text_len;
};

/* Adds a conflict. Returns the item for its hunks, or NULL if it is only counted. */
struct conflict *conflicts_add(struct conflicts *conflicts, const char *path, const char *reason);

/* Adds what the sides have made of some lines. Without room for it the hunk is left out. */
void conflict_add_hunk(struct conflicts *conflicts, struct conflict *conflict,
                       const struct text_hunk *hunk);
void conflicts_done(struct conflicts *conflicts);
