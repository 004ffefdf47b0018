// SPDX-License-Identifier: Apache-2.0
#include "egress/http/sieve.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/xalloc.h"

enum {
    HELD_MAX = 64 * 1024,
    UNZIP_BYTES = 16 * 1024,
    ANY_WINDOW = 15 + 32, /* gzip or zlib, as the bytes say */
    FREE_BYTES = 1024 * 1024,
    EXPANSION_MAX = 200,
    ZIPPED_SHARE = 1024, /* at most so many compressed bytes in one step */
};

struct sieve_unzip {
    z_stream zip;
    uint64_t in, out;
    bool is_over;
};

int sieve_start(struct sieve *sieve, const struct needles *needles, struct http_text encoding,
                bool is_chunked)
{
    sieve_done(sieve);
    *sieve = (struct sieve){
        .needles = needles, .held = BUF_INIT(HELD_MAX), .is_chunked = is_chunked, .found = -1
    };
    if (!needles || encoding.len == 0 || http_text_is(encoding, "identity"))
        return 0;
    if (!http_text_is(encoding, "gzip") && !http_text_is(encoding, "x-gzip") &&
        !http_text_is(encoding, "deflate"))
        return -ENOTSUP;
    sieve->unzip = xcalloc(1, sizeof(*sieve->unzip));
    if (inflateInit2(&sieve->unzip->zip, ANY_WINDOW) == Z_OK)
        return 0;
    free(TAKE_PTR(sieve->unzip));
    return -ENOTSUP;
}

void sieve_done(struct sieve *sieve)
{
    if (sieve->unzip)
        (void)inflateEnd(&sieve->unzip->zip);
    free(TAKE_PTR(sieve->unzip));
    buf_done(&sieve->held);
    explicit_bzero(&sieve->stream, sizeof(sieve->stream));
}

size_t sieve_share(const struct sieve *sieve, size_t len)
{
    return sieve->unzip && len > ZIPPED_SHARE ? ZIPPED_SHARE : len;
}

static int content_look(struct sieve *sieve, const char *data, size_t len)
{
    sieve->found = needles_feed(sieve->needles, &sieve->stream, data, len);
    return sieve->found >= 0 ? -EACCES : 0;
}

/* Several compressed members may follow each other. */
static int zipped_look(struct sieve *sieve, const char *data, size_t len)
{
    struct sieve_unzip *unzip = sieve->unzip;
    char plain[UNZIP_BYTES];
    z_stream *zip = &unzip->zip;

    zip->next_in = (Bytef *)(uintptr_t)data;
    zip->avail_in = (uInt)len;
    unzip->in += len;
    do {
        int r;
        size_t made;

        if (unzip->is_over && inflateReset(zip) != Z_OK)
            return -EBADMSG;
        unzip->is_over = false;
        zip->next_out = (Bytef *)plain;
        zip->avail_out = sizeof(plain);
        r = inflate(zip, Z_NO_FLUSH);
        made = sizeof(plain) - zip->avail_out;
        unzip->out += made;
        if (unzip->out > FREE_BYTES + EXPANSION_MAX * unzip->in)
            return -EBADMSG;
        if (content_look(sieve, plain, made) < 0)
            return -EACCES;
        unzip->is_over = r == Z_STREAM_END;
        if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
            return -EBADMSG;
    } while (zip->avail_in > 0 || zip->avail_out == 0);
    return 0;
}

static int content_write(const struct sieve *sieve, const char *data, size_t len, struct buf *out)
{
    if (len == 0)
        return 0;
    return sieve->is_chunked ? http_chunk_add(out, data, len) : buf_add(out, data, len);
}

/* Passes on all but the last `kept` of the held and the new bytes. */
static int content_pass(struct sieve *sieve, struct http_text data, size_t kept, struct buf *out)
{
    struct buf *held = &sieve->held;
    size_t total = held->len + data.len, passed = total > kept ? total - kept : 0;
    size_t from_held = passed < held->len ? passed : held->len;
    int r = content_write(sieve, held->data, from_held, out);

    if (r < 0)
        return r;
    if (from_held > 0)
        buf_consume(held, from_held);
    passed -= from_held;
    r = content_write(sieve, data.at, passed, out);
    if (r == 0 && data.len > passed)
        r = buf_add(held, data.at + passed, data.len - passed);
    return r;
}

int sieve_push(struct sieve *sieve, const char *data, size_t len, struct buf *out)
{
    size_t kept = 0;
    int r;

    if (sieve->needles) {
        r = sieve->unzip ? zipped_look(sieve, data, len) : content_look(sieve, data, len);
        if (r < 0)
            return r;
        kept = needles_partial(sieve->needles, &sieve->stream);
        if (kept > 0 && sieve->unzip) /* where it is in the compressed bytes is not known */
            kept = SIZE_MAX;
    }
    return content_pass(sieve, (struct http_text){ data, len }, kept, out);
}

int sieve_end(struct sieve *sieve, struct buf *out)
{
    int r = content_pass(sieve, (struct http_text){ "", 0 }, 0, out);

    return r == 0 && sieve->is_chunked ? http_chunk_add(out, NULL, 0) : r;
}
