/* The first bytes of a TLS connection. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { HELLO_MAX = 18 * 1024, HELLO_NAME_MAX = 255 };

struct hello {
    char name[HELLO_NAME_MAX + 1]; /* of the extension server_name; "": none */
    bool is_encrypted;             /* it has an encrypted ClientHello, whose name is hidden */
};

/* Returns whether the bytes may be the start of a TLS record with a handshake. */
bool hello_is_tls(const void *data, size_t len);

/* Reads the ClientHello, which may be split over records. Returns 1, 0 if more bytes are needed, or
 * -EBADMSG, also for a name with bytes that a host name cannot have. */
int hello_parse(const void *data, size_t len, struct hello *ret);
