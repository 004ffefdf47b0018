// SPDX-License-Identifier: Apache-2.0
/* The search of Wu and Manber: a table says for each pair of bytes how far the window may move, so
 * that most bytes are never looked at. */
#include "egress/secret/needle.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text/base64.h"
#include "base/xalloc.h"

enum { SHIFTS = 4096, TEXT_MAX = 64 * 1024, ALIGNMENTS = 3 };

struct needle {
    char text[NEEDLE_MAX];
    size_t len, tag;
};

struct needles {
    struct needle *items;
    size_t count, shortest, longest;
    uint8_t shifts[SHIFTS];
};

struct needles *needles_new(void)
{
    return xcalloc(1, sizeof(struct needles));
}

void needles_free(struct needles *needles)
{
    if (!needles)
        return;
    if (needles->items)
        explicit_bzero(needles->items, needles->count * sizeof(*needles->items));
    free(needles->items);
    free(needles);
}

static void needle_add(struct needles *needles, const char *text, size_t len, size_t tag)
{
    struct needle *grown, *needle;

    if (len < NEEDLE_MIN)
        return;
    len = len < NEEDLE_MAX ? len : NEEDLE_MAX;
    for (size_t i = 0; i < needles->count; i++)
        if (needles->items[i].len == len && memcmp(needles->items[i].text, text, len) == 0)
            return;
    /* Not reallocated: that could leave a copy behind. */
    grown = xcalloc(needles->count + 1, sizeof(*grown));
    if (needles->count > 0) {
        memcpy(grown, needles->items, needles->count * sizeof(*grown));
        explicit_bzero(needles->items, needles->count * sizeof(*grown));
        free(needles->items);
    }
    needles->items = grown;
    needle = &grown[needles->count++];
    memcpy(needle->text, text, len);
    needle->len = len;
    needle->tag = tag;
}

static void wiped_done(struct buf *buf)
{
    if (buf->data)
        explicit_bzero(buf->data, buf->cap);
    buf_done(buf);
}

/* The characters of base64 that depend on the text alone when `before` bytes stand in front. */
static void base64_add(struct needles *needles, const char *text, size_t len, size_t before,
                       size_t tag)
{
    static const size_t skipped[ALIGNMENTS] = { 0, 2, 3 };
    cleanup_with(wiped_done) struct buf raw = BUF_INIT(TEXT_MAX),
                                        coded = BUF_INIT((size_t)2 * TEXT_MAX);
    size_t whole = (before + len) * 8 / 6;

    if (buf_reserve(&raw, before + len) < 0 || buf_reserve(&coded, 2 * (before + len) + 8) < 0 ||
        buf_add(&raw, "\0\0", before) < 0 || buf_add(&raw, text, len) < 0 ||
        base64_encode(&coded, raw.data, raw.len) < 0 || whole <= skipped[before])
        return;
    needle_add(needles, coded.data + skipped[before], whole - skipped[before], tag);
    for (size_t i = 0; i < coded.len; i++) {
        if (coded.data[i] == '+')
            coded.data[i] = '-';
        else if (coded.data[i] == '/')
            coded.data[i] = '_';
    }
    needle_add(needles, coded.data + skipped[before], whole - skipped[before], tag);
}

static void percent_add(struct needles *needles, const char *text, size_t len, const char *digits,
                        size_t tag)
{
    cleanup_with(wiped_done) struct buf coded = BUF_INIT((size_t)3 * TEXT_MAX);

    if (buf_reserve(&coded, 3 * len) < 0)
        return;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || (c && strchr("-._~", c));
        const char escaped[] = { '%', digits[c >> 4], digits[c & 15] };

        (void)(is_plain ? buf_add(&coded, &text[i], 1) : buf_add(&coded, escaped, 3));
    }
    needle_add(needles, coded.data ? coded.data : "", coded.len, tag);
}

static void json_add(struct needles *needles, const char *text, size_t len, size_t tag)
{
    cleanup_with(wiped_done) struct buf coded = BUF_INIT((size_t)6 * TEXT_MAX);

    if (buf_reserve(&coded, 6 * len + 2) == 0 && json_add_text(&coded, text, len) == 0 &&
        coded.len > 2)
        needle_add(needles, coded.data + 1, coded.len - 2, tag);
}

void needles_add(struct needles *needles, const char *text, size_t len, size_t tag)
{
    if (len < NEEDLE_MIN)
        return;
    needle_add(needles, text, len, tag);
    for (size_t before = 0; before < ALIGNMENTS; before++)
        base64_add(needles, text, len, before, tag);
    percent_add(needles, text, len, "0123456789ABCDEF", tag);
    percent_add(needles, text, len, "0123456789abcdef", tag);
    json_add(needles, text, len, tag);
}

static size_t pair_hash(const char *at)
{
    return ((size_t)(unsigned char)at[0] * 61 + (size_t)(unsigned char)at[1] * 16) % SHIFTS;
}

void needles_ready(struct needles *needles)
{
    size_t shortest = NEEDLE_MAX;

    for (size_t i = 0; i < needles->count; i++) {
        size_t len = needles->items[i].len;

        shortest = len < shortest ? len : shortest;
        needles->longest = len > needles->longest ? len : needles->longest;
    }
    needles->shortest = shortest;
    memset(needles->shifts, (int)(shortest - 1), sizeof(needles->shifts));
    for (size_t i = 0; i < needles->count; i++) {
        for (size_t j = 0; j + 1 < shortest; j++) {
            uint8_t *shift = &needles->shifts[pair_hash(needles->items[i].text + j)];
            uint8_t wanted = (uint8_t)(shortest - 2 - j);

            *shift = wanted < *shift ? wanted : *shift;
        }
    }
}

long needles_find(const struct needles *needles, const char *data, size_t len)
{
    size_t at = 0;

    if (needles->count == 0)
        return -1;
    while (at + needles->shortest <= len) {
        size_t shift = needles->shifts[pair_hash(data + at + needles->shortest - 2)];

        if (shift > 0) {
            at += shift;
            continue;
        }
        for (size_t i = 0; i < needles->count; i++) {
            const struct needle *needle = &needles->items[i];

            if (needle->len <= len - at && needle->text[0] == data[at] &&
                memcmp(needle->text, data + at, needle->len) == 0)
                return (long)needle->tag;
        }
        at++;
    }
    return -1;
}

static void tail_add(struct needle_stream *stream, const char *data, size_t len, size_t kept)
{
    if (len >= kept) {
        memcpy(stream->tail, data + len - kept, kept);
        stream->len = kept;
        return;
    }
    if (stream->len + len > kept) {
        size_t dropped = stream->len + len - kept;

        memmove(stream->tail, stream->tail + dropped, stream->len - dropped);
        stream->len -= dropped;
    }
    memcpy(stream->tail + stream->len, data, len);
    stream->len += len;
}

long needles_feed(const struct needles *needles, struct needle_stream *stream, const char *data,
                  size_t len)
{
    char border[2 * NEEDLE_MAX];
    size_t part;
    long tag;

    if (needles->count == 0 || len == 0)
        return -1;
    part = len < needles->longest - 1 ? len : needles->longest - 1;
    memcpy(border, stream->tail, stream->len);
    memcpy(border + stream->len, data, part);
    tag = needles_find(needles, border, stream->len + part);
    if (tag < 0)
        tag = needles_find(needles, data, len);
    tail_add(stream, data, len, needles->longest - 1);
    return tag;
}

size_t needles_partial(const struct needles *needles, const struct needle_stream *stream)
{
    size_t longest = 0;

    for (size_t i = 0; i < needles->count; i++) {
        const struct needle *needle = &needles->items[i];
        size_t most = needle->len - 1 < stream->len ? needle->len - 1 : stream->len;

        for (size_t k = most; k >= NEEDLE_HOLD_MIN && k > longest; k--) {
            const char *at = stream->tail + stream->len - k;

            if (at[0] == needle->text[0] && memcmp(at, needle->text, k) == 0)
                longest = k;
        }
    }
    return longest;
}
