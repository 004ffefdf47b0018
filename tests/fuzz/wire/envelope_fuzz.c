// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "client/error.h"
#include "holt.h"
#include "wire/envelope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A parsed envelope that is encoded again gives the same bytes. */
static void check_same(const struct envelope *envelope, const uint8_t *data, size_t size)
{
    cleanup_with(buf_done) struct buf again = BUF_INIT(ENVELOPE_HEADER_SIZE + ENVELOPE_PAYLOAD_MAX);

    if (envelope->is_end)
        return;
    if (envelope_add(&again, envelope->payload, envelope->len) < 0 || again.len != size ||
        memcmp(again.data, data, size) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct envelope envelope;
    ssize_t used;

    while ((used = envelope_parse(data, size, &envelope)) > 0) {
        struct holt_error ignored;

        if ((size_t)used > size || (size_t)used != ENVELOPE_HEADER_SIZE + envelope.len)
            abort();
        check_same(&envelope, data, (size_t)used);
        if (envelope.is_end)
            (void)error_from_end(&ignored, envelope.payload, envelope.len);
        data += used;
        size -= (size_t)used;
    }
    return 0;
}
