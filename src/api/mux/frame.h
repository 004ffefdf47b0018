/* Frames of a multiplexed stream: one JSON object in each text message of the WebSocket.
 *
 *   from the client  {"key":"KEY"}                                 first, of a browser's session
 *                    {"id":7,"call":"holt.v1.ProcessService/Attach","message":{...},"credit":65536}
 *                    {"id":7,"message":{...}}  {"id":7,"end":true}
 *                    {"id":7,"cancel":true}    {"id":7,"credit":65536}
 *                    {"ping":1}
 *   from the daemon  {"ready":true}
 *                    {"id":7,"message":{...}}  {"id":7,"credit":65536}
 *                    {"id":7,"end":{}}         {"id":7,"end":{"error":{"code":...}}}
 *                    {"pong":1}
 *
 * Credit counts the characters (code points) of whole frames with a message. A side sends such a
 * frame only while it has credit left; the frame may be larger than what is left. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

#define MUX_ID_MAX ((UINT64_C(1) << 53) - 1) /* what JavaScript counts exactly */

struct mux_frame {
    json_t *object; /* owns the texts and the message */
    bool is_ping;
    uint64_t ping;
    const char *key;       /* NULL: the frame is none of a session */
    uint64_t id;           /* of the channel; 0: the frame is none of a channel */
    const char *call;      /* opens the channel; or NULL */
    const json_t *message; /* or NULL */
    bool is_end, is_cancel;
    bool has_credit;
    uint64_t credit;
    uint64_t timeout_ms; /* 0: none */
};

/* Parses a frame from the client. Fails with ERR_INVALID for one that is none of the above. */
int mux_frame_parse(const char *text, size_t len, struct mux_frame *ret, struct err *err);

void mux_frame_done(struct mux_frame *frame);

/* Append a frame to the client: 0, -ENOBUFS or -ENOMEM. The texts are JSON. */
int mux_frame_add_message(struct buf *out, uint64_t id, const char *text, size_t len);
int mux_frame_add_end(struct buf *out, uint64_t id, const char *text, size_t len);
int mux_frame_add_error(struct buf *out, uint64_t id, const struct err *err);

/* Returns the number of characters in UTF-8 text. */
size_t mux_count_characters(const char *text, size_t len);
