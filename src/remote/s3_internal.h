/* What the files of the S3 backend share. */
#pragma once

#include <curl/curl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "remote/backend.h"
#include "remote/sigv4.h"

struct buf;
struct err;

enum { S3_IDLE_MAX = 16, S3_CODE_SIZE = 64 };

struct s3 {
    struct remote remote;
    char *endpoint;        /* https://HOST[:PORT] */
    char *host;            /* HOST[:PORT], as in the header */
    char *bucket, *prefix; /* of keys: "" or with a slash at its end */
    char *region, *key_file;
    unsigned timeout_ms;
    atomic_bool has_bucket; /* a reply has proved that it exists */
    struct lock lock;       /* over the idle connections */
    CURL *idle[S3_IDLE_MAX];
    size_t idle_count;
};

struct s3_call {
    const char *method;
    const char *path; /* from its first slash; needs no encoding */
    const struct sigv4_pair *query;
    size_t query_count;
    const struct sigv4_pair *header; /* one more, or NULL */
    const void *data;                /* of PUT */
    size_t len;
    struct buf *into; /* the body of a success is appended here; NULL: dropped */
    size_t into_max;  /* bytes of it */
    bool is_object;   /* the body is an object, so its length must be announced */
};

struct s3_reply {
    long status;
    uint64_t length; /* that was announced; UINT64_MAX: none */
    bool has_etag;
    bool is_again;           /* an earlier try may have had an effect */
    int64_t date_s;          /* of the server; 0: unknown */
    char code[S3_CODE_SIZE]; /* of the error; "": none */
    char message[160];
    char region[S3_CODE_SIZE]; /* that the server wants; "": unknown */
};

/* Makes a request, again after failures that may pass. Returns 0 if there is a reply, of any
 * status, and fails otherwise. */
int s3_send(struct s3 *s3, const struct s3_call *call, struct s3_reply *ret, struct err *err);

/* Closes the idle connections. */
void s3_connections_close(struct s3 *s3);

/* Returns whether a reply means that the server may accept the same request later. */
bool s3_reply_may_pass(const struct s3_reply *reply);

/* Takes code, message and region from the body of an error, if it has them. */
void s3_reply_read(struct s3_reply *reply, const struct buf *body);

/* Sets the error for a reply that is no success. Returns like err_set. */
int s3_explain(const struct s3 *s3, const struct s3_reply *reply, struct err *err);

/* The list of remote_ops. */
int s3_list(struct remote *remote, const struct remote_list *list, struct err *err);

/* Reads one page of a list, and reports its objects. The keys begin with `prefix`, which is left
 * out. *ret_token is that of the next page, which the caller frees; NULL: it was the last. Returns
 * 0, -EBADMSG, -ENOBUFS or -ENOMEM; or what list->found returned, with *ret_has_stopped. */
int s3_page_read(const struct buf *body, const char *prefix, const struct remote_list *list,
                 char **ret_token, bool *ret_has_stopped);
