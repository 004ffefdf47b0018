/* Raw streams: the frames on a connection after HTTP has handed it over to a process.
 *
 * A client that calls ProcessService/Exec or SandboxService/Run with the headers "Connection:
 * Upgrade" and "Upgrade: holt-stream/1" receives either an HTTP error, or 101 and from then on
 * frames in both directions, without padding:
 *
 *   byte 0     type: enum raw_type
 *   bytes 1-3  0
 *   bytes 4-7  length of the payload, little-endian
 *   payload
 *
 * STDOUT and STDERR carry the bytes that the process wrote, EVENT one of the JSON messages that
 * the call would have returned (never one of output), and END is the last frame: {} on success,
 * otherwise {"error":{...}} as at the end of a Connect stream. The client sends STDIN, and an
 * empty STDIN_EOF to close the process's stdin. The boundaries between frames of a stream have no
 * meaning.
 *
 * A client stream that is requested in this way (the request body is its first message) is
 * answered with an empty EVENT when it has started. The client continues with MESSAGE, one JSON
 * message without bytes, STDIN with the bytes that belong to it, and STDIN_EOF after the last;
 * another EVENT is the reply.
 *
 * The daemon sends nothing to a client that does not read, and closes the connection after a
 * malformed frame. A client that closes its side of the connection, even only for writing, has
 * hung up. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;

#define RAW_PROTOCOL "holt-stream/1"

enum {
    RAW_HEADER_SIZE = 8,
    RAW_DATA_MAX = 1024 * 1024, /* frames that may be delivered in pieces */
    RAW_WHOLE_MAX = 64 * 1024,  /* EVENT, END and MESSAGE */
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

/* State of a receiver. Zero-initialised except for the side. */
struct raw_parser {
    bool is_daemon; /* accepts the types sent to the daemon */
    bool is_upload; /* a client stream: accepts MESSAGE too */
    enum raw_type type;
    size_t left; /* bytes of the current data frame that are still to come */
};

struct raw_piece {
    enum raw_type type;
    const char *data; /* points into the parsed bytes */
    size_t len;
};

/* Parses the start of data: a whole EVENT, END, MESSAGE or STDIN_EOF, or some bytes of a stream.
 * Returns the bytes used including headers, 0 if more are needed (at most RAW_HEADER_SIZE +
 * RAW_WHOLE_MAX at once), or -EPROTO. */
ssize_t raw_next(struct raw_parser *parser, const void *data, size_t len, struct raw_piece *ret);

/* Fills in the header of a frame. */
void raw_header(unsigned char header[RAW_HEADER_SIZE], enum raw_type type, size_t len);

/* Appends a whole frame. Returns 0, -EMSGSIZE, -ENOBUFS or -ENOMEM. */
int raw_add(struct buf *out, enum raw_type type, const void *payload, size_t len);
