/* The frames of a WebSocket (RFC 6455), whose clients mask what they send. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { WEBSOCKET_HEAD_MAX = 14 };

/* Where in the frames a stream of bytes is. */
struct websocket_reader {
    uint8_t head[WEBSOCKET_HEAD_MAX];
    size_t head_len; /* bytes of the head so far */
    uint64_t left;   /* bytes of the payload */
    size_t at;       /* in the mask */
};

/* Writes the payload of the frames in `data` without its mask to `out`, which has room for as many
 * bytes, and leaves out their heads. Returns the bytes written. */
size_t websocket_read(struct websocket_reader *reader, const char *data, size_t len, char *out);
