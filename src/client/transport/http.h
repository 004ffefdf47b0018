/* The client side of one HTTP/1.1 connection. Replies are parsed by http_parser, which stops at 80
 * KiB of headers; only requested headers are kept. The decoded body is collected in a buffer whose
 * limit each request sets. */
#pragma once

#include <http_parser.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct holt_error;
struct link;

/* A reply header to keep; all others are dropped. */
struct http_wanted {
    const char *name;
    char value[128]; /* "": absent or too long */
    size_t len;
};

struct http {
    struct link *link; /* NULL: not connected */
    int64_t deadline;  /* of the latest request */
    struct http_parser parser;
    struct buf body; /* decoded and not consumed yet */
    bool has_head;
    bool is_complete;
    bool can_reuse; /* the connection can be reused after this reply */
    bool is_overfull;
    bool can_upgrade; /* it was requested */
    bool is_upgraded; /* the reply was 101; body has the bytes after it */
    struct http_wanted *wanted;
    char field[64]; /* the name of the header that is being parsed, so far */
    size_t field_len;
    bool has_value; /* a part of the reply was received */
};

struct http_request {
    const char *verb; /* NULL: POST */
    const char *authority;
    const char *path;    /* without the leading slash */
    const char *headers; /* additional headers, each with its end of line; NULL: none */
    const char *content_type;
    const char *token;   /* NULL: none */
    const char *upgrade; /* the protocol to upgrade to; NULL: none */
    const void *body;
    size_t len;
    bool is_chunked;            /* the body follows by http_send_chunk */
    size_t reply_max;           /* limit of the body's unconsumed bytes */
    struct http_wanted *wanted; /* must stay valid until the reply's status was read; NULL: none */
    int64_t deadline;           /* for the whole call; also sent to the daemon */
};

/* Takes ownership of the link. */
void http_init(struct http *http, struct link *link);
void http_done(struct http *http);

/* Returns whether a request may be sent: the last reply is complete and the daemon has not closed
 * the connection. */
bool http_is_idle(const struct http *http);

/* Sends a request. Returns 0 or -1. If the daemon hangs up meanwhile, this returns 0, as its reply
 * may have the reason. */
int http_send(struct http *http, const struct http_request *request, struct holt_error *error);

/* Sends a part of a chunked body; len 0 ends it. Errors are those of http_send. */
int http_send_chunk(struct http *http, const void *data, size_t len, struct holt_error *error);

/* Waits for the reply's status. Returns 0 or -1. */
int http_read_head(struct http *http, unsigned *ret_status, struct holt_error *error);

/* Waits for more of the body. Returns 1, 0 if the reply is complete, or -1. */
int http_read_body(struct http *http, struct holt_error *error);

/* Parses received bytes; len 0 is the end of the connection. Returns 0 or -1. */
int http_feed(struct http *http, const char *data, size_t len, struct holt_error *error);
