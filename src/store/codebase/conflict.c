// SPDX-License-Identifier: Apache-2.0
#include "store/codebase/conflict.h"

#include <stdlib.h>

#include "base/xalloc.h"

struct conflict *conflicts_add(struct conflicts *conflicts, const char *path, const char *reason)
{
    conflicts->count++;
    if (conflicts->listed == CONFLICTS_LISTED_MAX)
        return NULL;
    if (!conflicts->items)
        conflicts->items = xcalloc(CONFLICTS_LISTED_MAX, sizeof(*conflicts->items));
    conflicts->items[conflicts->listed] =
        (struct conflict){ .path = xstrdup(path), .reason = reason };
    return &conflicts->items[conflicts->listed++];
}

void conflicts_done(struct conflicts *conflicts)
{
    for (size_t i = 0; i < conflicts->listed; i++) {
        struct conflict *conflict = &conflicts->items[i];

        for (size_t j = 0; j < conflict->hunk_count; j++) {
            free(conflict->hunks[j].ours);
            free(conflict->hunks[j].theirs);
        }
        free(conflict->hunks);
        free(conflict->path);
    }
    free(conflicts->items);
    *conflicts = (struct conflicts){ .items = NULL };
}
