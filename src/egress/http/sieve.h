/* Looks for texts in a body while it passes, also where it is compressed, and writes it anew. Bytes
 * that may be the start of such a text wait until more are known. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "egress/http/message.h"
#include "egress/secret/needle.h"

struct sieve_unzip;

struct sieve {
    const struct needles *needles; /* NULL: nothing is looked for */
    struct needle_stream stream;
    struct sieve_unzip *unzip;
    struct buf held;
    bool is_chunked; /* what is written */
    long found;      /* the tag of a text, after -EACCES */
};

/* Starts a body. Returns 0, or -ENOTSUP for an encoding in which nothing can be looked for. */
int sieve_start(struct sieve *sieve, const struct needles *needles, struct http_text encoding,
                bool is_chunked);
void sieve_done(struct sieve *sieve);

/* Returns how many of these bytes are to be pushed at once: few compressed ones can be many. */
size_t sieve_share(const struct sieve *sieve, size_t len);

/* Passes content on. Returns 0, -EACCES when a text was found, -EBADMSG if it cannot be
 * decompressed or expands too much, -ENOBUFS. */
int sieve_push(struct sieve *sieve, const char *data, size_t len, struct buf *out);

/* Ends the body. */
int sieve_end(struct sieve *sieve, struct buf *out);
