/* Merges two texts that were made from a third: hunk by hunk. */
#pragma once

#include <stddef.h>

#include "store/codebase/lines.h"

struct buf;

/* Whose side wins where both have changed. */
enum codebase_side {
    CODEBASE_NEITHER, /* it is a conflict */
    CODEBASE_OURS,
    CODEBASE_THEIRS,
    CODEBASE_MARKERS, /* both, between lines that begin with <<<<<<<, ======= and >>>>>>> */
};

/* What both sides have changed differently. */
struct text_hunk {
    unsigned line; /* of ours, from 1 on */
    struct text ours, theirs;
};

struct text_merge {
    struct text base, ours, theirs;
    enum codebase_side side;
    const char *name; /* of their side, for markers */
    void (*conflict)(void *context, const struct text_hunk *hunk);
    void *context;
};

/* Appends the result to a buffer: what only one side has changed, and what both changed alike, is
 * taken; all else as `side` says. With CODEBASE_NEITHER `conflict` gets it, and the result is of no
 * use. Lines that both changed and that touch each other are one hunk. Returns 0, -EFBIG for more
 * than LINES_MAX lines, -ENOBUFS or -ENOMEM. */
int text_merge(const struct text_merge *merge, struct buf *out);
