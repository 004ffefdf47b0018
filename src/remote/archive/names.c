// SPDX-License-Identifier: Apache-2.0
#include "remote/archive/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

enum { SLOTS_FIRST = 1024 };

void archive_names_init(struct archive_names *names)
{
    *names = (struct archive_names){ 0 };
    lock_init(&names->lock, LOCK_ARCHIVE_NAMES);
}

void archive_names_done(struct archive_names *names)
{
    free(names->ids);
    free(names->slots);
    lock_destroy(&names->lock);
}

/* Returns the slot of an identity, or the free one where it belongs. Identities are hashes. */
static uint32_t *name_slot(const struct archive_names *names, const uint8_t *id)
{
    uint64_t hash;
    size_t i;

    memcpy(&hash, id, sizeof(hash));
    for (i = hash % names->slot_count;; i = (i + 1) % names->slot_count) {
        uint32_t number = names->slots[i];

        if (number == 0 || memcmp(names->ids[number - 1], id, ARCHIVE_ID_LEN) == 0)
            return &names->slots[i];
    }
}

static void names_grow(struct archive_names *names)
{
    names->slot_count = names->slot_count == 0 ? SLOTS_FIRST : 2 * names->slot_count;
    names->ids = xreallocarray(names->ids, names->slot_count / 2, sizeof(*names->ids));
    free(names->slots);
    names->slots = xcalloc(names->slot_count, sizeof(*names->slots));
    for (size_t i = 0; i < names->count; i++)
        *name_slot(names, names->ids[i]) = (uint32_t)i + 1;
}

bool archive_names_add(struct archive_names *names, const uint8_t id[ARCHIVE_ID_LEN])
{
    lock_scope(&names->lock);
    uint32_t *slot;

    if (names->count == names->slot_count / 2)
        names_grow(names);
    slot = name_slot(names, id);
    if (*slot != 0)
        return false;
    memcpy(names->ids[names->count++], id, ARCHIVE_ID_LEN);
    *slot = (uint32_t)names->count;
    return true;
}
