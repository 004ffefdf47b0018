// SPDX-License-Identifier: Apache-2.0
/* Frames of the multiplexed stream: whatever the bytes, a typed refusal, or a frame whose fields
 * the stream may rely on. */
#include <assert.h>
#include <stdint.h>

#include "api/mux/frame.h"
#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = { 0 };
    struct mux_frame frame;

    assert(mux_count_characters((const char *)data, size) <= size);
    if (mux_frame_parse((const char *)data, size, &frame, &err) < 0) {
        assert(err.kind == ERR_INVALID);
        return 0;
    }
    assert(frame.id <= MUX_ID_MAX && frame.ping <= MUX_ID_MAX && frame.credit <= MUX_ID_MAX);
    assert((frame.id > 0) + frame.is_ping + (frame.key != NULL) == 1);
    assert(!frame.message || json_is_object(frame.message));
    mux_frame_done(&frame);
    return 0;
}
