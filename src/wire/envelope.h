/* Connect streaming envelopes: how a stream of JSON messages is cut inside an HTTP body.
 *
 *   byte 0     flags: 0 a message, 2 the end of the stream; anything else is refused
 *   bytes 1-4  length of the payload, big-endian
 *   payload    JSON. The end's payload is {} when all went well, else
 *              {"error":{"code":"not_found", ...}}, see wire/error.h
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
    ENVELOPE_PAYLOAD_MAX = 3 * 1024 * 1024, /* 1 MiB of a script, as JSON writes it */
    ENVELOPE_LARGE_MAX = 32 * 1024 * 1024,  /* 16 MiB of a file: calls of tools, and all answers */
};

struct envelope {
    bool is_end;
    const char *payload; /* inside the bytes that were parsed; not NUL-terminated */
    size_t len;
};

/* Appends one message: 0, -EMSGSIZE when the payload is too long, -ENOBUFS or -ENOMEM. */
int envelope_add(struct buf *out, const void *payload, size_t len);

/* The same with a payload of up to ENVELOPE_LARGE_MAX bytes. */
int envelope_add_large(struct buf *out, const void *payload, size_t len);

/* Appends the end of the stream, which went wrong unless err is NULL. Returns as envelope_add does.
 */
int envelope_add_end(struct buf *out, const struct err *err);

/* Reads the envelope that data starts with: its whole size, 0 when more bytes are needed, -EPROTO
 * on unknown flags, -EMSGSIZE on a payload beyond ENVELOPE_PAYLOAD_MAX. Refuses as soon as the
 * header is there, so a caller never buffers for an envelope that it will not get. */
ssize_t envelope_parse(const void *data, size_t len, struct envelope *ret);

/* The same with a payload of up to max bytes. */
ssize_t envelope_parse_up_to(const void *data, size_t len, size_t max, struct envelope *ret);
