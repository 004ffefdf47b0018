/* Writes the head of a request anew: values for placeholders, headers that are set, and nothing
 * that is about the client's connection. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "egress/http/message.h"
#include "egress/http_head.h"
#include "egress/secret/secret.h"

struct rewrite_way {
    const struct broker_secrets *secrets;
    const char *name; /* of the host; normalized */
    uint16_t port;
    bool has_own_path; /* the sandbox has a proxy or a CA bundle of its own */
};

struct rewrite {
    struct buf target;
    struct http_draft draft; /* without Host and what frames the body */
    bool searches;           /* a secret is for this host: the reply is looked at */
    bool wants_json;         /* a secret is for a place in the body, which is JSON */
    /* after -EACCES: */
    const char *problem;
    const char *where; /* of control.h: a placeholder was seen there; NULL: none was */
    size_t secret;     /* which */
};

void rewrite_init(struct rewrite *rewrite);
void rewrite_done(struct rewrite *rewrite);

/* Returns 0, or -EACCES with the problem. */
int rewrite_head(const struct rewrite_way *way, const struct http_head *head,
                 const struct http_fields *fields, struct rewrite *ret);

/* Puts values into a whole body of JSON. The old content is replaced. Returns as above. */
int rewrite_json(const struct rewrite_way *way, struct buf *body, struct rewrite *ret);
