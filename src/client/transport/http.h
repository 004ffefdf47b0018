/* One HTTP/1.1 connection from the client's side: a request out, a reply in, all of it bounded.
 *
 * Replies are parsed by http_parser, which itself stops at 80 KiB of headers; we keep none of them.
 * The decoded body gathers in a buffer whose limit each request sets. */
#pragma once

#include <http_parser.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct holt_error;
struct link;

/* A header of the reply to keep; all others are dropped. */
struct http_wanted {
    const char *name;
    char value[128]; /* "": it is not there, or too long */
    size_t len;
};

struct http {
    struct link *link; /* NULL: not connected */
    int64_t deadline;  /* of the request that was sent last */
    struct http_parser parser;
    struct buf body; /* decoded, and left by the caller until now */
    bool has_head;
    bool is_complete;
    bool can_reuse; /* the connection may carry one more request behind this reply */
    bool is_overfull;
    bool can_upgrade; /* it was requested */
    bool is_upgraded; /* the reply was 101; what came behind it is in body */
    struct http_wanted *wanted;
    char field[64]; /* the name of the header that is being parsed, as far as it has come */
    size_t field_len;
    bool has_value; /* some of what belongs to it was seen */
};

struct http_request {
    const char *verb; /* NULL: POST */
    const char *authority;
    const char *path;    /* without the leading slash */
    const char *headers; /* further ones, each with its end of line; NULL: none */
    const char *content_type;
    const char *token;   /* NULL: none */
    const char *upgrade; /* the protocol to upgrade to; NULL: none */
    const void *body;
    size_t len;
    bool is_chunked;            /* there is no body yet: it comes with http_send_chunk */
    size_t reply_max;           /* bytes of body that may wait to be taken */
    struct http_wanted *wanted; /* must stay until the reply's status was read; NULL: none */
    int64_t deadline;           /* for everything up to the end of the reply; sent to the daemon */
};

/* Takes the link. */
void http_init(struct http *http, struct link *link);
void http_done(struct http *http);

/* Whether a request may be sent: the last reply has been read whole, and the daemon has not closed
 * the connection since then. */
bool http_is_idle(const struct http *http);

/* 0 or -1. A daemon that hangs up while it is sent to has perhaps said why, so that is no error
 * here: reading the reply tells. */
int http_send(struct http *http, const struct http_request *request, struct holt_error *error);

/* A part of a chunked body; len 0 is its end. As http_send. */
int http_send_chunk(struct http *http, const void *data, size_t len, struct holt_error *error);

/* Waits for the reply's status: 0 with it in ret_status, or -1. */
int http_read_head(struct http *http, unsigned *ret_status, struct holt_error *error);

/* Waits for more of the body: 1, or 0 when the reply is complete, or -1. */
int http_read_body(struct http *http, struct holt_error *error);

/* Takes received bytes, or with len 0 the end of the connection: 0 or -1. */
int http_feed(struct http *http, const char *data, size_t len, struct holt_error *error);
