// SPDX-License-Identifier: Apache-2.0
#include "tools/search/braces.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"

enum { BYTES_MAX = 1024 * 1024 };

/* A pattern that is expanded up to `from`. */
struct piece {
    char *text;
    size_t len, from;
};

struct work {
    struct piece pieces[BRACES_MAX]; /* a stack */
    size_t count;
    size_t bytes;
};

/* A pair of braces, and one of the alternatives in it. */
struct choice {
    size_t open, close;
    size_t start, end;
};

/* Pushes the pattern with an alternative in place of the braces. */
static int work_push(struct work *work, size_t done, const struct piece *whole,
                     const struct choice *choice)
{
    size_t open = choice->open, part = choice->end - choice->start;
    size_t tail = whole->len - choice->close - 1, len = open + part + tail;
    struct piece *piece;

    if (work->count + done >= BRACES_MAX || work->bytes + len > BYTES_MAX)
        return -E2BIG;
    piece = &work->pieces[work->count++];
    piece->text = xcalloc(1, len + 1);
    memcpy(piece->text, whole->text, open);
    memcpy(piece->text + open, whole->text + choice->start, part);
    memcpy(piece->text + open + part, whole->text + choice->close + 1, tail);
    piece->len = len;
    piece->from = open;
    work->bytes += len;
    return 0;
}

static int work_push_all(struct work *work, size_t done, const struct piece *whole,
                         struct choice *choice)
{
    size_t depth = 0;

    choice->start = choice->open + 1;
    for (size_t i = choice->open; i <= choice->close; i++) {
        char c = whole->text[i];

        if (c == '\\') {
            i++;
        } else if (c == '{') {
            depth++;
        } else if ((c == ',' && depth == 1) || i == choice->close) {
            int r;

            choice->end = i;
            r = work_push(work, done, whole, choice);
            if (r < 0)
                return r;
            choice->start = i + 1;
        } else if (c == '}') {
            depth--;
        }
    }
    return 0;
}

/* An opening brace. */
struct open_brace {
    size_t at;
    bool has_comma;
};

/* Finds the first pair of braces with a comma, in linear time also with unclosed braces. */
static bool piece_find_braces(const struct piece *piece, struct choice *ret)
{
    cleanup_free struct open_brace *stack = xcalloc(piece->len + 1, sizeof(*stack));
    size_t depth = 0;
    bool found = false;

    for (size_t i = piece->from; i < piece->len; i++) {
        char c = piece->text[i];

        if (c == '\\') {
            i++;
        } else if (c == '{') {
            stack[depth++] = (struct open_brace){ .at = i };
        } else if (c == ',' && depth > 0) {
            stack[depth - 1].has_comma = true;
        } else if (c == '}' && depth > 0 && stack[--depth].has_comma &&
                   (!found || stack[depth].at < ret->open)) {
            ret->open = stack[depth].at;
            ret->close = i;
            found = true;
        }
    }
    return found;
}

static int work_expand(struct work *work, struct braces *ret)
{
    while (work->count > 0) {
        struct piece piece = work->pieces[--work->count];
        struct choice choice = { 0 };
        int r;

        if (!piece_find_braces(&piece, &choice)) {
            ret->at[ret->count] = piece.text;
            ret->lens[ret->count++] = piece.len;
            continue;
        }
        r = work_push_all(work, ret->count, &piece, &choice);
        free(piece.text);
        if (r < 0)
            return r;
    }
    return 0;
}

int braces_expand(const char *pattern, size_t len, struct braces *ret)
{
    struct work *work = xcalloc(1, sizeof(*work));
    int r;

    *ret = (struct braces){ .at = xcalloc(BRACES_MAX, sizeof(char *)),
                            .lens = xcalloc(BRACES_MAX, sizeof(size_t)) };
    work->pieces[0] = (struct piece){ .text = xcalloc(1, len + 1), .len = len };
    memcpy(work->pieces[0].text, pattern, len);
    work->count = 1;
    r = work_expand(work, ret);
    while (work->count > 0)
        free(work->pieces[--work->count].text);
    free(work);
    if (r < 0)
        braces_done(ret);
    return r;
}

void braces_done(struct braces *braces)
{
    for (size_t i = 0; i < braces->count; i++)
        free(braces->at[i]);
    free(braces->at);
    free(braces->lens);
    *braces = (struct braces){ 0 };
}
