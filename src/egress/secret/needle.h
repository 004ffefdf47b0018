/* Finds any of many texts in a stream of bytes: the placeholders and values of secrets, also where
 * they are encoded. Of a long text the first NEEDLE_MAX bytes are looked for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
    NEEDLE_MIN = 6, /* shorter texts would be found everywhere */
    NEEDLE_MAX = 128,
    NEEDLE_HOLD_MIN = 4,
};

struct needles;

struct needles *needles_new(void);

/* Wipes the texts. Accepts NULL. */
void needles_free(struct needles *needles);

/* Adds a text with the ways it may be written: plain, percent-encoded, as in JSON, and in base64 at
 * all three alignments in both alphabets. `tag` is what needles_tag gives for each. */
void needles_add(struct needles *needles, const char *text, size_t len, size_t tag);

/* Call once after the last needles_add. */
void needles_ready(struct needles *needles);

/* What was seen last of a stream. Zero is a new one. */
struct needle_stream {
    char tail[NEEDLE_MAX];
    size_t len;
};

/* Looks at the next bytes of a stream. Returns the tag of a text that ends in them, or -1. */
long needles_feed(const struct needles *needles, struct needle_stream *stream, const char *data,
                  size_t len);

/* Looks at bytes that stand alone. */
long needles_find(const struct needles *needles, const char *data, size_t len);

/* Returns how many of the last bytes of the stream may be the start of a text: at least
 * NEEDLE_HOLD_MIN, or 0. They must not be passed on before the next bytes are known. */
size_t needles_partial(const struct needles *needles, const struct needle_stream *stream);
