// SPDX-License-Identifier: Apache-2.0
/* A form that comes in pieces; the first byte says of what size. However it is cut, what it is
 * taken for is the same. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "e2b/envd/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SEEN_MAX = 16 << 20 };

static int part_begin(void *context, const char *name, const char *filename, struct err *err)
{
    (void)err;
    if (strlen(name) > MULTIPART_NAME_MAX || strlen(filename) > MULTIPART_NAME_MAX)
        abort();
    return buf_printf(context, "[%s|%s]", name, filename);
}

static int part_data(void *context, const void *data, size_t len, struct err *err)
{
    (void)err;
    if (len == 0)
        abort();
    return buf_add(context, data, len);
}

static int part_end(void *context, struct err *err)
{
    (void)err;
    return buf_add_str(context, "].");
}

static int read_form(const uint8_t *data, size_t size, size_t piece, struct buf *ret)
{
    static const struct multipart_ops ops = { part_begin, part_data, part_end };
    cleanup_with(multipart_done) struct multipart form = { 0 };
    struct err err = { 0 };
    int r = multipart_init(&form, "multipart/form-data; boundary=B", &ops, ret, &err);

    for (size_t at = 0; r == 0 && at < size; at += piece)
        r = multipart_feed(&form, data + at, size - at < piece ? size - at : piece, &err);
    return r == 0 ? multipart_finish(&form, &err) : r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(buf_done) struct buf whole = BUF_INIT(SEEN_MAX), cut = BUF_INIT(SEEN_MAX);

    if (size == 0)
        return 0;
    if (read_form(data + 1, size - 1, size, &whole) == 0 &&
        (read_form(data + 1, size - 1, 1 + data[0] % 64, &cut) != 0 || whole.len != cut.len ||
         (whole.len > 0 && memcmp(whole.data, cut.data, whole.len) != 0)))
        abort();
    return 0;
}
