/* Raw streams: what a connection carries once HTTP has handed it over to a process.
 *
 * A client that calls ProcessService/Exec or SandboxService/Run as ever, but with the headers
 * "Connection: Upgrade" and "Upgrade: holt-stream/1", gets either an HTTP error, or 101 and from
 * then on frames both ways, without gaps:
 *
 *   byte 0     type: enum raw_type
 *   bytes 1-3  0
 *   bytes 4-7  length of the payload, little-endian
 *   payload
 *
 * STDOUT and STDERR are bytes as the process wrote them, EVENT is one of the JSON messages that the
 * call would have answered with (never one of output), and END is the last frame: {} when all went
 * well, else {"error":{...}} as at the end of a Connect stream. The client sends STDIN, and
 * STDIN_EOF, which is empty, to close the process's stdin. How a stream is cut into frames means
 * nothing. A client stream that was asked for in this way (the body of the request is then its
 * first message) is answered with an empty EVENT when it has begun. The client goes on with
 * MESSAGE, which is one JSON message without bytes, STDIN, which are the bytes that belong to it,
 * and STDIN_EOF behind the last; another EVENT is the answer. Whoever does not read is not sent to,
 * and whoever's frame is not as it should be is hung up on. A client that closes its side of the
 * connection, and be it only for writing, has left.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;

#define RAW_PROTOCOL "holt-stream/1"

enum {
    RAW_HEADER_SIZE = 8,
    RAW_DATA_MAX = 1024 * 1024, /* of a frame that may be handed on in pieces */
    RAW_WHOLE_MAX = 64 * 1024,  /* of EVENT and END */
};

enum raw_type {
    RAW_NONE,
    RAW_STDOUT,
    RAW_STDERR,
    RAW_EVENT,
    RAW_END,
    RAW_STDIN,
    RAW_STDIN_EOF,
    RAW_MESSAGE,
    RAW_TYPES
};

/* Where a receiver is in what it receives. Zero at the beginning, but for the side. */
struct raw_parser {
    bool is_daemon; /* which types it accepts */
    bool is_upload; /* of a client stream: messages too */
    enum raw_type type;
    size_t left; /* bytes of the payload of a data frame that have yet to come */
};

struct raw_piece {
    enum raw_type type;
    const char *data; /* inside the bytes that were parsed */
    size_t len;
};

/* Takes what data starts with: a whole EVENT, END, MESSAGE or STDIN_EOF, or some bytes of a stream.
 * Returns how many bytes that were, headers included, 0 when more are needed (at most
 * RAW_HEADER_SIZE + RAW_WHOLE_MAX at once), or -EPROTO. */
ssize_t raw_next(struct raw_parser *parser, const void *data, size_t len, struct raw_piece *ret);

/* Fills in the header of a frame. */
void raw_header(unsigned char header[RAW_HEADER_SIZE], enum raw_type type, size_t len);

/* Appends a whole frame: 0, -EMSGSIZE, -ENOBUFS or -ENOMEM. */
int raw_add(struct buf *out, enum raw_type type, const void *payload, size_t len);
