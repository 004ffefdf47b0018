// SPDX-License-Identifier: Apache-2.0
#include "store/import/inodes.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 1024 };

/* Returns the slot that holds inode, or the free slot where it belongs. */
static ino_t *slot_of(ino_t *slots, size_t capacity, ino_t inode)
{
    size_t at = (size_t)(((uint64_t)inode * 0x9E3779B97F4A7C15u) >> 20) & (capacity - 1);

    while (slots[at] != 0 && slots[at] != inode)
        at = (at + 1) & (capacity - 1);
    return &slots[at];
}

static int inode_set_grow(struct inode_set *set)
{
    size_t capacity = set->capacity ? set->capacity * 2 : FIRST_CAPACITY;
    ino_t *slots = calloc(capacity, sizeof(*slots));

    if (!slots)
        return -ENOMEM;
    for (size_t i = 0; i < set->capacity; i++) {
        if (set->slots[i] != 0)
            *slot_of(slots, capacity, set->slots[i]) = set->slots[i];
    }
    free(set->slots);
    set->slots = slots;
    set->capacity = capacity;
    return 0;
}

int inode_set_add(struct inode_set *set, ino_t inode)
{
    ino_t *slot;
    int r;

    if (set->used * 2 >= set->capacity) {
        r = inode_set_grow(set);
        if (r < 0)
            return r;
    }
    slot = slot_of(set->slots, set->capacity, inode);
    set->used += *slot == 0;
    *slot = inode;
    return 0;
}

bool inode_set_has(const struct inode_set *set, ino_t inode)
{
    return set->capacity > 0 && *slot_of(set->slots, set->capacity, inode) == inode;
}

void inode_set_done(struct inode_set *set)
{
    free(set->slots);
    *set = (struct inode_set){ 0 };
}
