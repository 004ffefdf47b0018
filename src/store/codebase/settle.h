/* Settles paths that both sides of a merge have changed. */
#pragma once

#include "store/codebase/apply.h"
#include "store/codebase/conflict.h"
#include "store/codebase/text_merge.h"

struct settling {
    enum codebase_side side;
    const char *name; /* of their side, for markers */
    struct conflicts *conflicts;
};

/* Merges files that are text line by line, and takes a side for all else, as the `struct settling`
 * in context says. What has no side is added to its conflicts. For struct apply. */
int conflict_settle(void *context, const struct apply_conflict *conflict,
                    struct apply_choice *choice, struct err *err);
