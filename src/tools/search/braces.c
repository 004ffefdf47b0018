// SPDX-License-Identifier: Apache-2.0
#include "tools/search/braces.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"

enum { BYTES_MAX = 1024 * 1024 };

/* A text with braces from `from` on, perhaps. */
struct piece {
    char *text;
    size_t len, from;
};

struct work {
    struct piece pieces[BRACES_MAX]; /* a stack */
    size_t count;
    size_t bytes;
};

/* The braces in a text, and one of the parts between their commas. */
struct choice {
    size_t open, close;
    size_t start, end;
};

/* Pushes the text with the part in the place of the braces. */
static int push(struct work *work, size_t done, const struct piece *whole,
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

static int split(struct work *work, size_t done, const struct piece *whole, struct choice *choice)
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
            r = push(work, done, whole, choice);
            if (r < 0)
                return r;
            choice->start = i + 1;
        } else if (c == '}') {
            depth--;
        }
    }
    return 0;
}

/* A brace that was opened and not closed yet. */
struct opened {
    size_t at;
    bool has_comma;
};

/* Where the first braces are that mean something, which is those with a comma; false when there are
 * none. Time is linear, whatever is left open. */
static bool find(const struct piece *piece, struct choice *ret)
{
    cleanup_free struct opened *stack = xcalloc(piece->len + 1, sizeof(*stack));
    size_t depth = 0;
    bool found = false;

    for (size_t i = piece->from; i < piece->len; i++) {
        char c = piece->text[i];

        if (c == '\\') {
            i++;
        } else if (c == '{') {
            stack[depth++] = (struct opened){ .at = i };
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

static int expand(struct work *work, struct braces *ret)
{
    while (work->count > 0) {
        struct piece piece = work->pieces[--work->count];
        struct choice choice = { 0 };
        int r;

        if (!find(&piece, &choice)) {
            ret->at[ret->count] = piece.text;
            ret->lens[ret->count++] = piece.len;
            continue;
        }
        r = split(work, ret->count, &piece, &choice);
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
    r = expand(work, ret);
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
