/* Memory that is freed all at once, and that cannot exist without a limit. */
#pragma once

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *last;
    size_t used; /* bytes handed out */
    size_t max;
};

#define ARENA_INIT(limit)                                                                          \
    {                                                                                              \
        .max = (limit)                                                                             \
    }

/* Returns zeroed, aligned memory that lives until arena_done; NULL beyond the limit or without
 * memory. */
void *arena_alloc(struct arena *arena, size_t count, size_t size);

/* The same for what no client sizes: aborts without memory, as xcalloc does. */
void *arena_take(struct arena *arena, size_t count, size_t size);

/* Returns a copy of the text, as arena_take does. */
char *arena_copy_text(struct arena *arena, const char *text);

/* Frees everything. */
void arena_done(struct arena *arena);
