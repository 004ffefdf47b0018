/* The data types of the SSH protocols (RFC 4251, section 5): big-endian numbers, and strings with
 * their length. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* Bytes that belong to somebody else. */
struct ssh_bytes {
    const unsigned char *data;
    size_t len;
};

/* Reads fields in order; after the first one that is missing, all are empty and `ok` is false. */
struct ssh_reader {
    const unsigned char *next;
    size_t left;
    bool ok;
};

struct ssh_reader ssh_reader_of(const void *data, size_t len);
uint8_t ssh_get_u8(struct ssh_reader *reader);
uint32_t ssh_get_u32(struct ssh_reader *reader);
struct ssh_bytes ssh_get_string(struct ssh_reader *reader);

/* Returns a positive integer without its leading zero; one that is negative is malformed. */
struct ssh_bytes ssh_get_number(struct ssh_reader *reader);

/* Returns whether all fields were there and no bytes are left. */
bool ssh_reader_is_done(const struct ssh_reader *reader);

bool ssh_bytes_are(struct ssh_bytes bytes, const char *text);
bool ssh_bytes_equal(struct ssh_bytes one, struct ssh_bytes other);

/* Append fields. Return whether they fitted, so that they chain with &&. */
bool ssh_put_u8(struct buf *out, uint8_t value);
bool ssh_put_u32(struct buf *out, uint32_t value);
bool ssh_put_string(struct buf *out, const void *data, size_t len);
bool ssh_put_text(struct buf *out, const char *text);
/* Appends a positive integer: with a zero in front if its first bit is set. */
bool ssh_put_number(struct buf *out, const unsigned char *data, size_t len);
