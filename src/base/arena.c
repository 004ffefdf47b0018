// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 4096 - 64 };

struct arena_block {
    struct arena_block *before;
    size_t used, size;
    alignas(max_align_t) char bytes[];
};

static struct arena_block *block_add(struct arena *arena, size_t size)
{
    size_t room = size > BLOCK_BYTES ? size : BLOCK_BYTES;
    struct arena_block *block = calloc(1, sizeof(*block) + room);

    if (!block)
        return NULL;
    block->size = room;
    block->before = arena->last;
    arena->last = block;
    return block;
}

void *arena_alloc(struct arena *arena, size_t count, size_t size)
{
    struct arena_block *block = arena->last;
    size_t bytes;
    void *memory;

    if (__builtin_mul_overflow(count, size, &bytes) || bytes > arena->max - arena->used)
        return NULL;
    bytes = (bytes + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if (!block || bytes > block->size - block->used)
        block = block_add(arena, bytes);
    if (!block)
        return NULL;
    memory = block->bytes + block->used;
    block->used += bytes;
    arena->used = bytes < arena->max - arena->used ? arena->used + bytes : arena->max;
    return memory;
}

void *arena_take(struct arena *arena, size_t count, size_t size)
{
    void *memory = arena_alloc(arena, count, size);

    if (!memory)
        abort();
    return memory;
}

char *arena_copy_text(struct arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;

    return memcpy(arena_take(arena, size, 1), text, size);
}

void arena_done(struct arena *arena)
{
    while (arena->last) {
        struct arena_block *before = arena->last->before;

        free(arena->last);
        arena->last = before;
    }
    arena->used = 0;
}
