// SPDX-License-Identifier: Apache-2.0
/* The pairs are those of Myers, "An O(ND) Difference Algorithm and Its Variations" (1986), in
 * linear space: a region is divided where the shortest edit from its start meets the one from its
 * end. */
#include "store/codebase/lines.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Edits from either end after which a region is given up: its lines get no pairs. It bounds the
 * time that hostile texts can take. */
enum { COST_MAX = 4096 };

/* --- lines ------------------------------------------------------------------------------------ */

static size_t line_length(const char *at, const char *end)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));

    return (size_t)((newline ? newline + 1 : end) - at);
}

static size_t lines_count(const struct text *text)
{
    size_t count = 0;

    for (const char *at = text->data, *end = at + text->len; at < end; count++)
        at += line_length(at, end);
    return count;
}

static int text_split(const struct text *text, struct lines *ret)
{
    const size_t count = lines_count(text);
    const char *at = text->data, *end = at + text->len;

    *ret = (struct lines){ .count = count };
    if (count > LINES_MAX)
        return -EFBIG;
    ret->items = calloc(count + 1, sizeof(*ret->items));
    if (!ret->items)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        ret->items[i] = (struct line){ .text = at, .len = (uint32_t)line_length(at, end) };
        at += ret->items[i].len;
    }
    return 0;
}

static int by_text(const void *a, const void *b)
{
    const struct line *x = *(struct line *const *)a, *y = *(struct line *const *)b;
    const int r = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);

    return r != 0 ? r : (x->len > y->len) - (x->len < y->len);
}

/* Sorting takes the same time for all texts; a hash table would not for hostile ones. */
static int lines_number(struct lines *lists, size_t count)
{
    struct line **sorted;
    size_t all = 0, at = 0;
    uint32_t number = 0;

    for (size_t i = 0; i < count; i++)
        all += lists[i].count;
    sorted = calloc(all + 1, sizeof(struct line *));
    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < lists[i].count; j++)
            sorted[at++] = &lists[i].items[j];
    qsort(sorted, all, sizeof(*sorted), by_text);
    for (size_t i = 0; i < all; i++) {
        if (i > 0 && by_text(&sorted[i - 1], &sorted[i]) != 0)
            number++;
        sorted[i]->number = number;
    }
    free(sorted);
    return 0;
}

void lines_done(struct lines *lines)
{
    free(lines->items);
    *lines = (struct lines){ .items = NULL };
}

int lines_split(const struct text *texts, size_t count, struct lines *ret)
{
    int r = 0;

    for (size_t i = 0; i < count; i++)
        ret[i] = (struct lines){ .items = NULL };
    for (size_t i = 0; r == 0 && i < count; i++)
        r = text_split(&texts[i], &ret[i]);
    if (r == 0)
        r = lines_number(ret, count);
    for (size_t i = 0; r < 0 && i < count; i++)
        lines_done(&ret[i]);
    return r;
}

/* --- pairs ------------------------------------------------------------------------------------ */

struct region {
    int32_t a, a_end, b, b_end;
};

/* How far edits have come on each diagonal (position in a minus position in b). */
struct reach {
    int32_t *at; /* by diagonal */
    int32_t first, last;
};

struct matching {
    const struct line *a, *b;
    int32_t *pairs;
    struct reach forward, backward;
};

static bool is_pair(const struct matching *m, int32_t a, int32_t b)
{
    return m->a[a].number == m->b[b].number;
}

/* Widens the diagonals by one on both sides, or narrows them at the border of the region. */
static void reach_widen(struct reach *reach, const struct region *region, int32_t unreached)
{
    if (reach->first > region->a - region->b_end)
        reach->at[--reach->first - 1] = unreached;
    else
        reach->first++;
    if (reach->last < region->a_end - region->b)
        reach->at[++reach->last + 1] = unreached;
    else
        reach->last--;
}

static bool reach_has(const struct reach *reach, int32_t diagonal)
{
    return reach->first <= diagonal && diagonal <= reach->last;
}

/* One more edit from the start. Returns whether it meets the edits from the end. */
static bool forward_step(struct matching *m, const struct region *region, bool may_meet,
                         int32_t *ret_a)
{
    struct reach *reach = &m->forward;

    reach_widen(reach, region, -1);
    for (int32_t diagonal = reach->last; diagonal >= reach->first; diagonal -= 2) {
        const int32_t below = reach->at[diagonal - 1], above = reach->at[diagonal + 1];
        int32_t a = below >= above ? below + 1 : above;

        while (a < region->a_end && a - diagonal < region->b_end && is_pair(m, a, a - diagonal))
            a++;
        reach->at[diagonal] = a;
        if (may_meet && reach_has(&m->backward, diagonal) && m->backward.at[diagonal] <= a) {
            *ret_a = a;
            ret_a[1] = a - diagonal;
            return true;
        }
    }
    return false;
}

/* One more edit from the end. Returns whether it meets the edits from the start. */
static bool backward_step(struct matching *m, const struct region *region, bool may_meet,
                          int32_t *ret_a)
{
    struct reach *reach = &m->backward;

    reach_widen(reach, region, INT32_MAX);
    for (int32_t diagonal = reach->last; diagonal >= reach->first; diagonal -= 2) {
        const int32_t below = reach->at[diagonal - 1], above = reach->at[diagonal + 1];
        int32_t a = below < above ? below : above - 1;

        while (a > region->a && a - diagonal > region->b && is_pair(m, a - 1, a - diagonal - 1))
            a--;
        reach->at[diagonal] = a;
        if (may_meet && reach_has(&m->forward, diagonal) && a <= m->forward.at[diagonal]) {
            *ret_a = a;
            ret_a[1] = a - diagonal;
            return true;
        }
    }
    return false;
}

/* Finds a point of the shortest edit that lies neither at the start nor at the end. Returns false
 * if the edit is too long. */
static bool middle_find(struct matching *m, const struct region *region, int32_t ret[2])
{
    const int32_t start = region->a - region->b, end = region->a_end - region->b_end;
    const bool is_odd = (start - end) % 2 != 0;

    m->forward.first = m->forward.last = start;
    m->forward.at[start] = region->a;
    m->backward.first = m->backward.last = end;
    m->backward.at[end] = region->a_end;
    for (int cost = 0; cost < COST_MAX; cost++)
        if (forward_step(m, region, is_odd, ret) || backward_step(m, region, !is_odd, ret))
            return true;
    return false;
}

/* NOLINTNEXTLINE(misc-no-recursion): each call has at most half of the edits */
static void region_match(struct matching *m, struct region region)
{
    int32_t middle[2];

    while (region.a < region.a_end && region.b < region.b_end && is_pair(m, region.a, region.b))
        m->pairs[region.a++] = region.b++;
    while (region.a < region.a_end && region.b < region.b_end &&
           is_pair(m, region.a_end - 1, region.b_end - 1))
        m->pairs[--region.a_end] = --region.b_end;
    if (region.a == region.a_end || region.b == region.b_end || !middle_find(m, &region, middle))
        return;
    region_match(m, (struct region){ region.a, middle[0], region.b, middle[1] });
    region_match(m, (struct region){ middle[0], region.a_end, middle[1], region.b_end });
}

int lines_match(const struct lines *a, const struct lines *b, int32_t *ret)
{
    const size_t diagonals = a->count + b->count + 3;
    int32_t *reach = calloc(2 * diagonals, sizeof(*reach));
    struct matching m = { .a = a->items, .b = b->items, .pairs = ret };

    if (!reach)
        return -ENOMEM;
    m.forward.at = reach + b->count + 1;
    m.backward.at = m.forward.at + diagonals;
    for (size_t i = 0; i < a->count; i++)
        ret[i] = -1;
    region_match(&m, (struct region){ 0, (int32_t)a->count, 0, (int32_t)b->count });
    free(reach);
    return 0;
}
