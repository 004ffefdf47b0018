/* Connect streaming envelopes: the framing of a stream of JSON messages in an HTTP body.
 *
 *   byte 0     flags: 0 a message, 2 the end of the stream; others are an error
 *   bytes 1-4  length of the payload, big-endian
 *   payload    JSON. The payload of the end is {} on success, otherwise
 *             {"error":{"code":"not_found", ...}}, see wire/error.h
 *
 * https://connectrpc.com/docs/protocol/#streaming-rpcs; compression (flag 1) is never negotiated.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct buf;
struct err;

enum {
    ENVELOPE_HEADER_SIZE = 5,
    ENVELOPE_PAYLOAD_MAX = 3 * 1024 * 1024, /* 1 MiB of a script, as JSON */
    ENVELOPE_LARGE_MAX = 32 * 1024 * 1024,  /* 16 MiB of a file: tool calls, and all replies */
};

struct envelope {
    bool is_end;
    const char *payload; /* points into the parsed bytes; not NUL-terminated */
    size_t len;
};

/* Appends one message. Returns 0, -EMSGSIZE if the payload is too long, -ENOBUFS or -ENOMEM. */
int envelope_add(struct buf *out, const void *payload, size_t len);

/* Does the same for a payload of up to ENVELOPE_LARGE_MAX bytes. */
int envelope_add_large(struct buf *out, const void *payload, size_t len);

/* Appends the end of the stream, with an error unless err is NULL. Returns like envelope_add. */
int envelope_add_end(struct buf *out, const struct err *err);

/* Parses the envelope at the start of data. Returns its total size, 0 if more bytes are needed,
 * -EPROTO for unknown flags, -EMSGSIZE for a payload above ENVELOPE_PAYLOAD_MAX. Fails as soon as
 * the header is complete, so a caller never buffers an oversized envelope. */
ssize_t envelope_parse(const void *data, size_t len, struct envelope *ret);

/* Does the same for a payload of up to max bytes. */
ssize_t envelope_parse_up_to(const void *data, size_t len, size_t max, struct envelope *ret);
