// SPDX-License-Identifier: Apache-2.0
/* Lines of the base that both sides still have divide the texts into pieces. A piece that one side
 * left as it was becomes what the other made of it. */
#include "store/codebase/text_merge.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

enum { BASE, OURS, THEIRS, TEXTS };

struct merging {
    const struct text_merge *merge;
    struct buf *out;
    struct lines lines[TEXTS];
    int32_t *pairs[TEXTS]; /* of lines of the base; that of the base itself is not used */
};

/* Lines [at, end) of each text. */
struct piece {
    size_t at[TEXTS], end[TEXTS];
};

static void merging_done(struct merging *merging)
{
    for (int i = 0; i < TEXTS; i++) {
        lines_done(&merging->lines[i]);
        free(merging->pairs[i]);
    }
}

static struct text piece_text(const struct merging *merging, const struct piece *piece, int of)
{
    const struct line *items = merging->lines[of].items;
    struct text text = { .data = "" };

    if (piece->at[of] < piece->end[of])
        text.data = items[piece->at[of]].text;
    for (size_t i = piece->at[of]; i < piece->end[of]; i++)
        text.len += items[i].len;
    return text;
}

static bool piece_same(const struct merging *merging, const struct piece *piece, int a, int b)
{
    const struct line *x = &merging->lines[a].items[piece->at[a]];
    const struct line *y = &merging->lines[b].items[piece->at[b]];
    const size_t count = piece->end[a] - piece->at[a];

    if (piece->end[b] - piece->at[b] != count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (x[i].number != y[i].number)
            return false;
    return true;
}

static int piece_write(const struct merging *merging, const struct piece *piece, int of)
{
    const struct text text = piece_text(merging, piece, of);

    return buf_add(merging->out, text.data, text.len);
}

static int marker_write(const struct merging *merging, const char *marker, const char *name)
{
    const struct buf *out = merging->out;
    bool is_within = out->len > 0 && out->data[out->len - 1] != '\n';

    return buf_printf(merging->out, "%s%s%s%s\n", is_within ? "\n" : "", marker, *name ? " " : "",
                      name);
}

static int markers_write(const struct merging *merging, const struct piece *piece)
{
    int r = marker_write(merging, "<<<<<<<", "ours");

    if (r == 0)
        r = piece_write(merging, piece, OURS);
    if (r == 0)
        r = marker_write(merging, "=======", "");
    if (r == 0)
        r = piece_write(merging, piece, THEIRS);
    return r < 0 ? r : marker_write(merging, ">>>>>>>", merging->merge->name);
}

/* Takes lines that both sides have at both ends of a piece out of a conflict. */
static int common_write(const struct merging *merging, struct piece *piece, struct piece *ret_after)
{
    const struct line *ours = merging->lines[OURS].items, *theirs = merging->lines[THEIRS].items;
    struct piece before = *piece;
    size_t end;

    while (piece->at[OURS] < piece->end[OURS] && piece->at[THEIRS] < piece->end[THEIRS] &&
           ours[piece->at[OURS]].number == theirs[piece->at[THEIRS]].number)
        piece->at[OURS]++, piece->at[THEIRS]++;
    before.end[OURS] = piece->at[OURS];
    end = piece->end[OURS];
    while (piece->at[OURS] < piece->end[OURS] && piece->at[THEIRS] < piece->end[THEIRS] &&
           ours[piece->end[OURS] - 1].number == theirs[piece->end[THEIRS] - 1].number)
        piece->end[OURS]--, piece->end[THEIRS]--;
    *ret_after = *piece;
    ret_after->at[OURS] = piece->end[OURS];
    ret_after->end[OURS] = end;
    return piece_write(merging, &before, OURS);
}

static int conflict_write(const struct merging *merging, struct piece piece)
{
    const struct text_merge *merge = merging->merge;
    struct piece after;
    int r = common_write(merging, &piece, &after);

    if (r < 0)
        return r;
    if (merge->side == CODEBASE_NEITHER) {
        const struct text_hunk hunk = { .line = (unsigned)piece.at[OURS] + 1,
                                        .ours = piece_text(merging, &piece, OURS),
                                        .theirs = piece_text(merging, &piece, THEIRS) };

        merge->conflict(merge->context, &hunk);
        return 0;
    }
    if (merge->side == CODEBASE_MARKERS)
        r = markers_write(merging, &piece);
    else
        r = piece_write(merging, &piece, merge->side == CODEBASE_OURS ? OURS : THEIRS);
    return r < 0 ? r : piece_write(merging, &after, OURS);
}

static int piece_merge(const struct merging *merging, const struct piece *piece)
{
    if (piece_same(merging, piece, BASE, OURS))
        return piece_write(merging, piece, THEIRS);
    if (piece_same(merging, piece, BASE, THEIRS) || piece_same(merging, piece, OURS, THEIRS))
        return piece_write(merging, piece, OURS);
    return conflict_write(merging, *piece);
}

/* Finds the next line of the base, from piece->at on, that both sides have; or the end. */
static void piece_end(const struct merging *merging, struct piece *piece)
{
    const size_t count = merging->lines[BASE].count;
    size_t i = piece->at[BASE];

    while (i < count && (merging->pairs[OURS][i] < 0 || merging->pairs[THEIRS][i] < 0))
        i++;
    piece->end[BASE] = i;
    for (int of = OURS; of < TEXTS; of++)
        piece->end[of] = i < count ? (size_t)merging->pairs[of][i] : merging->lines[of].count;
}

static int pieces_merge(const struct merging *merging)
{
    struct piece piece = { .at = { 0 } };
    int r = 0;

    for (;;) {
        piece_end(merging, &piece);
        r = piece_merge(merging, &piece);
        if (r < 0 || piece.end[BASE] == merging->lines[BASE].count)
            return r;
        for (int of = BASE; of < TEXTS; of++) { /* the line that all have */
            piece.at[of] = piece.end[of];
            piece.end[of]++;
        }
        r = piece_write(merging, &piece, OURS);
        if (r < 0)
            return r;
        memcpy(piece.at, piece.end, sizeof(piece.at));
    }
}

int text_merge(const struct text_merge *merge, struct buf *out)
{
    const struct text texts[TEXTS] = { merge->base, merge->ours, merge->theirs };
    cleanup_with(merging_done) struct merging merging = { .merge = merge, .out = out };
    int r = lines_split(texts, TEXTS, merging.lines);

    for (int of = OURS; r == 0 && of < TEXTS; of++) {
        merging.pairs[of] = calloc(merging.lines[BASE].count + 1, sizeof(int32_t));
        r = merging.pairs[of]
                ? lines_match(&merging.lines[BASE], &merging.lines[of], merging.pairs[of])
                : -ENOMEM;
    }
    return r < 0 ? r : pieces_merge(&merging);
}
