/* Parses the reply of a server inside a sandbox, which may be hostile. Only a status, well-formed
 * headers and a decoded body pass. The framing for the client is new, so one reply cannot be taken
 * for two. */
#pragma once

#include <http_parser.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

enum {
    PORT_REPLY_TEXT_MAX = 16 * 1024, /* bytes of names and values: it must fit the connection */
    PORT_REPLY_HEADERS_MAX = 128,
    PORT_REPLY_INTERIM_MAX = 32, /* 100 Continue and its like, in front of one reply */
};

#define PORT_REPLY_UNTIL_END UINT64_MAX

struct port_reply {
    /* what the request was; set before the first byte */
    bool is_head;     /* the reply has no body, whatever it says */
    bool can_upgrade; /* the request asked for an upgrade */

    bool has_head; /* everything up to the body is here */
    bool is_complete;
    bool is_upgraded; /* 101: what follows is no HTTP any more */
    unsigned status;
    uint64_t length; /* of the body, as announced, or PORT_REPLY_UNTIL_END */
    size_t header_count;

    struct http_parser parser;
    struct buf text;                          /* names and values, each with its NUL */
    size_t starts[PORT_REPLY_HEADERS_MAX][2]; /* of each name and value */
    bool has_value;                           /* of the last header some was seen */
    unsigned interims;
    unsigned lengths, encodings; /* headers that say where the body ends */
    char *body;                  /* while it is fed: where decoded bytes go */
    size_t body_len;
};

/* A zeroed reply with the first two fields set. */
void port_reply_init(struct port_reply *reply);
void port_reply_done(struct port_reply *reply);

/* Parses received bytes; len 0: the server has closed the connection. Moves body bytes (after an
 * upgrade: all) to the start of data and returns their number, or -EBADMSG for a malformed reply.
 * Must not be called after a complete reply. */
ssize_t port_reply_feed(struct port_reply *reply, char *data, size_t len);

/* The header of this index, once there is a head. Names are tokens, values have no control
 * characters. */
const char *port_reply_name(const struct port_reply *reply, size_t index);
const char *port_reply_value(const struct port_reply *reply, size_t index);
