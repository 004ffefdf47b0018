// SPDX-License-Identifier: Apache-2.0
#include "e2b/envd/inflate.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/err.h"
#include "base/xalloc.h"

enum { GZIP_ONLY = 16, OUT_SIZE = 128 * 1024 };

struct inflater {
    inflate_fn *take;
    void *context;
    z_stream zlib;
    bool is_ready;
    bool is_whole; /* a member has ended, and no other has begun */
    unsigned char out[OUT_SIZE];
};

struct inflater *inflater_new(inflate_fn *take, void *context)
{
    struct inflater *inflater = xcalloc(1, sizeof(*inflater));

    inflater->take = take;
    inflater->context = context;
    inflater->is_ready = inflateInit2(&inflater->zlib, GZIP_ONLY + MAX_WBITS) == Z_OK;
    return inflater;
}

static int refuse(struct err *err)
{
    return err_set(err, ERR_INVALID, "the body is not gzip, as its header says");
}

/* One turn: as much as fits. */
static int turn(struct inflater *inflater, struct err *err)
{
    z_stream *zlib = &inflater->zlib;
    size_t len;
    int r;

    /* Members may follow each other, and are one file together. */
    if (inflater->is_whole && inflateReset(zlib) != Z_OK)
        return refuse(err);
    inflater->is_whole = false;
    zlib->next_out = inflater->out;
    zlib->avail_out = OUT_SIZE;
    r = inflate(zlib, Z_NO_FLUSH);
    if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
        return refuse(err);
    inflater->is_whole = r == Z_STREAM_END;
    len = OUT_SIZE - zlib->avail_out;
    return len > 0 ? inflater->take(inflater->context, inflater->out, len, err) : 0;
}

int inflater_feed(struct inflater *inflater, const void *data, size_t len, struct err *err)
{
    z_stream *zlib = &inflater->zlib;
    int r = 0;

    if (!inflater->is_ready)
        return err_set(err, ERR_EXHAUSTED, "out of memory");
    zlib->next_in = (unsigned char *)(uintptr_t)data;
    zlib->avail_in = (unsigned)len; /* a piece of a request's body, which is never large */
    do
        r = turn(inflater, err);
    while (r == 0 && (zlib->avail_in > 0 || (zlib->avail_out == 0 && !inflater->is_whole)));
    return r;
}

int inflater_finish(const struct inflater *inflater, struct err *err)
{
    return inflater->is_whole ? 0 : refuse(err);
}

void inflater_free(struct inflater *inflater)
{
    if (!inflater)
        return;
    if (inflater->is_ready)
        (void)inflateEnd(&inflater->zlib);
    free(inflater);
}
