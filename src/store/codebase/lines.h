/* The lines of texts, and which lines of two texts belong together. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct text {
    const char *data;
    size_t len;
};

struct line {
    const char *text;
    uint32_t len;    /* with its newline, which the last line may lack */
    uint32_t number; /* equal lines of the texts that were split together have equal numbers */
};

struct lines {
    struct line *items;
    size_t count;
};

enum { LINES_MAX = 200000, LINES_TEXTS_MAX = 3 };

/* Splits up to LINES_TEXTS_MAX texts of at most UINT32_MAX bytes. Returns 0, -EFBIG beyond
 * LINES_MAX lines of a text, or -ENOMEM; then nothing is to be freed. */
int lines_split(const struct text *texts, size_t count, struct lines *ret);
void lines_done(struct lines *lines);

/* Finds equal lines in the same order on both sides: ret[i] is the line of b that belongs to line i
 * of a, or -1. Texts that differ in very many lines get fewer pairs than there are. Returns 0 or
 * -ENOMEM. */
int lines_match(const struct lines *a, const struct lines *b, int32_t *ret);
