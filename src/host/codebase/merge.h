/* Takes the changes of others into a sandbox, path by path against the version that both derive
 * from. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "store/codebase/conflict.h"
#include "store/codebase/text_merge.h"

struct err;
struct sandbox;

struct codebase_merging {
    uint32_t base; /* what the changes of the sandbox are compared with now */
    size_t files;  /* paths that were taken */
    struct conflicts conflicts;
};

/* Takes what was committed since the version that the sandbox derives from, which becomes the
 * newest one; ends its processes. With conflicts, which the caller frees, nothing has changed. */
int sandbox_rebase_codebase(struct sandbox *sandbox, enum codebase_side side,
                            struct codebase_merging *ret, struct err *err);

/* Takes what another sandbox of the same codebase has changed, in the same way. */
int sandbox_merge_codebase(struct sandbox *sandbox, struct sandbox *from, enum codebase_side side,
                           struct codebase_merging *ret, struct err *err);
