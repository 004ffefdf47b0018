// SPDX-License-Identifier: Apache-2.0
#include "api/mux/frame.h"

#include <inttypes.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "wire/error.h"

static const char *const fields[] = { "id",  "call",   "message", "credit",    "end",
                                      "key", "cancel", "ping",    "timeoutMs", NULL };

static int field_read_u64(const json_t *object, const char *name, uint64_t max, uint64_t *ret,
                          struct err *err)
{
    int r = json_get_u64(object, name, ret, err);

    if (r == 0 && *ret > max)
        return err_set(err, ERR_INVALID, "%s is larger than %" PRIu64, name, max);
    return r;
}

static int numbers_read(struct mux_frame *frame, struct err *err)
{
    const json_t *object = frame->object;
    int r = field_read_u64(object, "ping", MUX_ID_MAX, &frame->ping, err);

    frame->is_ping = json_field(object, "ping") != NULL;
    frame->has_credit = json_field(object, "credit") != NULL;
    if (r == 0)
        r = field_read_u64(object, "id", MUX_ID_MAX, &frame->id, err);
    if (r == 0)
        r = field_read_u64(object, "credit", MUX_ID_MAX, &frame->credit, err);
    if (r == 0)
        r = field_read_u64(object, "timeoutMs", UINT32_MAX, &frame->timeout_ms, err);
    return r;
}

static int others_read(struct mux_frame *frame, struct err *err)
{
    const json_t *object = frame->object;
    int r = json_get_text(object, "key", &frame->key, err);

    if (r == 0)
        r = json_get_text(object, "call", &frame->call, err);
    if (r == 0)
        r = json_get_object(object, "message", &frame->message, err);
    if (r == 0)
        r = json_get_bool(object, "end", &frame->is_end, err);
    if (r == 0)
        r = json_get_bool(object, "cancel", &frame->is_cancel, err);
    return r;
}

static int frame_check(const struct mux_frame *frame, struct err *err)
{
    bool has_channel_field = frame->call || frame->message || frame->is_end || frame->is_cancel ||
                             frame->has_credit || frame->timeout_ms > 0;

    if (frame->id == 0 && has_channel_field)
        return err_set(err, ERR_INVALID, "a channel needs an id above 0");
    if ((frame->id > 0) + frame->is_ping + (frame->key != NULL) != 1)
        return err_set(err, ERR_INVALID, "a frame has one of id, ping and key");
    if (frame->id > 0 && !has_channel_field)
        return err_set(err, ERR_INVALID, "the frame of channel %" PRIu64 " is empty", frame->id);
    return 0;
}

int mux_frame_parse(const char *text, size_t len, struct mux_frame *ret, struct err *err)
{
    struct mux_frame frame = { 0 };
    int r = json_parse_with_nul(text, len, &frame.object, err);

    if (r == 0)
        r = json_only_fields(frame.object, fields, err);
    if (r == 0)
        r = numbers_read(&frame, err);
    if (r == 0)
        r = others_read(&frame, err);
    if (r == 0)
        r = frame_check(&frame, err);
    if (r < 0) {
        mux_frame_done(&frame);
        return r;
    }
    *ret = frame;
    return 0;
}

void mux_frame_done(struct mux_frame *frame)
{
    json_decref(frame->object);
    *frame = (struct mux_frame){ 0 };
}

static int frame_add(struct buf *out, uint64_t id, const char *name, const char *text, size_t len)
{
    int r = buf_printf(out, "{\"id\":%" PRIu64 ",\"%s\":", id, name);

    if (r == 0)
        r = buf_add(out, text, len);
    return r < 0 ? r : buf_add_str(out, "}");
}

int mux_frame_add_message(struct buf *out, uint64_t id, const char *text, size_t len)
{
    return frame_add(out, id, "message", text, len);
}

int mux_frame_add_end(struct buf *out, uint64_t id, const char *text, size_t len)
{
    return frame_add(out, id, "end", text, len);
}

int mux_frame_add_error(struct buf *out, uint64_t id, const struct err *err)
{
    cleanup_json json_t *object = error_object(err);
    int r = object ? buf_printf(out, "{\"id\":%" PRIu64 ",\"end\":{\"error\":", id) : -ENOMEM;

    if (r == 0)
        r = json_write(object, out);
    return r < 0 ? r : buf_add_str(out, "}}");
}

size_t mux_count_characters(const char *text, size_t len)
{
    size_t count = 0;

    for (size_t i = 0; i < len; i++)
        count += ((unsigned char)text[i] & 0xc0) != 0x80; /* not in the middle of a character */
    return count;
}
