// SPDX-License-Identifier: Apache-2.0
#include <stdalign.h>
#include <stdlib.h>

#include "store/diff/diff_internal.h"

enum { BLOCK_BYTES = 64 << 10 };

struct diff_arena_block {
    struct diff_arena_block *next;
    size_t used;
    alignas(max_align_t) char data[];
};

static struct diff_arena_block *arena_block_add(struct diff_arena *arena)
{
    struct diff_arena_block *block;

    if (arena->left_bytes < BLOCK_BYTES)
        return NULL;
    block = calloc(1, BLOCK_BYTES);
    if (!block)
        return NULL;
    arena->left_bytes -= BLOCK_BYTES;
    block->next = arena->blocks;
    arena->blocks = block;
    return block;
}

void *diff_arena_take(struct diff_arena *arena, size_t size)
{
    const size_t room = BLOCK_BYTES - offsetof(struct diff_arena_block, data);
    struct diff_arena_block *block = arena->blocks;
    char *data;

    size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if (size > room)
        return NULL;
    if (!block || size > room - block->used)
        block = arena_block_add(arena);
    if (!block)
        return NULL;
    data = block->data + block->used;
    block->used += size;
    return data;
}

void diff_arena_done(struct diff_arena *arena)
{
    while (arena->blocks) {
        struct diff_arena_block *block = arena->blocks;

        arena->blocks = block->next;
        free(block);
    }
}
