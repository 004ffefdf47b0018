/* One HTTP/2 connection to a server, on which requests follow each other. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "egress/http/message.h"

struct h2;

/* What has come of the reply to the last request. */
struct h2_reply {
    unsigned status;          /* 0: no head yet */
    struct http_draft fields; /* of the head */
    struct buf data;          /* of the body; h2_consume takes it */
    bool is_ended;            /* nothing more comes */
    bool is_failed;           /* the stream was reset */
};

struct h2_request {
    const char *method, *authority;
    struct http_text target;
    const struct http_draft *fields;
    struct buf *upload; /* the body, from which bytes are taken; NULL: none */
};

struct h2 *h2_new(void);
void h2_free(struct h2 *h2);

/* Starts a request. Returns 0 or -EIO. */
int h2_request(struct h2 *h2, const struct h2_request *request);

/* Says that there is more in the upload, or that nothing more comes. */
void h2_upload(struct h2 *h2, bool is_over);

/* Takes bytes of the server. Returns 0 or -EPROTO. */
int h2_receive(struct h2 *h2, const char *data, size_t len);

/* Appends what is to be sent, while `out` has less than `max` bytes. Returns 0 or -EPROTO. */
int h2_send(struct h2 *h2, struct buf *out, size_t max);

/* Drops bytes of the reply's data, for which the server may send as many more. */
void h2_consume(struct h2 *h2, size_t len);

struct h2_reply *h2_reply(struct h2 *h2);

/* Returns whether another request can be made. */
bool h2_is_usable(const struct h2 *h2);
