// SPDX-License-Identifier: Apache-2.0
#include "store/codebase/conflict.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text/utf8.h"
#include "base/xalloc.h"
#include "store/codebase/text_merge.h"

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

/* Returns a copy in which bytes that are no UTF-8 are replaced; NULL if there is no room for it. */
static char *text_copy(const struct conflicts *conflicts, const struct text *text)
{
    struct buf copy = BUF_INIT(CONFLICTS_TEXT_MAX - conflicts->text_len);

    if (utf8_add(&copy, text->data, text->len) < 0 || buf_reserve(&copy, 1) < 0)
        buf_done(&copy);
    return copy.data;
}

void conflict_add_hunk(struct conflicts *conflicts, struct conflict *conflict,
                       const struct text_hunk *hunk)
{
    struct conflict_hunk copy = { .line = hunk->line };

    if (conflict->hunk_count == CONFLICT_HUNKS_MAX)
        return;
    copy.ours = text_copy(conflicts, &hunk->ours);
    copy.theirs = copy.ours ? text_copy(conflicts, &hunk->theirs) : NULL;
    if (!copy.theirs) {
        free(copy.ours);
        return;
    }
    conflicts->text_len += strlen(copy.ours);
    conflicts->text_len += strlen(copy.theirs);
    conflict->hunks = xreallocarray(conflict->hunks, conflict->hunk_count + 1, sizeof(copy));
    conflict->hunks[conflict->hunk_count++] = copy;
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
