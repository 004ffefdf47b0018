/* The steps of apply.h on one path: apply_write.c. */
#pragma once

#include "store/codebase/apply.h"
#include "store/codebase/differences.h"

/* A path to write. */
struct apply_item {
    struct tree_entry here; /* what the directory had when it was planned */
    struct tree_entry to;
    bool is_forced; /* whatever is in the way is removed */
    char *text;     /* the content; NULL: that of `to` */
    size_t text_len;
    mode_t mode; /* with text */
};

/* Removes what is at a path, and the directories above that `to` does not have once they are empty.
 * Returns 0, -ESTALE if it has changed since it was planned, or another -errno. */
int apply_remove(const struct apply *apply, const struct apply_item *item);

/* Makes a path what it is to be. Returns like apply_remove. */
int apply_write(const struct apply *apply, const struct apply_item *item);

/* Removes the incomplete file that an interrupted run may have left beside a path. */
void apply_clean(const struct apply *apply, const char *path);
