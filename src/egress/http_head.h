/* The head of a plain HTTP/1 request. It is read strictly: what two servers could understand in
 * two ways is refused, because a second reader would then see another request. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_HEAD_MAX = 32 * 1024, HTTP_HOST_MAX = 255, HTTP_METHOD_MAX = 16 };

enum http_body { HTTP_NO_BODY, HTTP_LENGTH, HTTP_CHUNKED };

struct http_head {
    size_t size; /* bytes of the head, with its empty line */
    char method[HTTP_METHOD_MAX + 1];
    char host[HTTP_HOST_MAX + 1]; /* without port; "": none, which HTTP/1.0 allows */
    uint16_t port;                /* of the Host field; 0: none */
    const char *path;             /* in the parsed bytes, not terminated: the path and query */
    size_t path_len;
    /* Fields by which a server may take another method or path than those of the first line. */
    char other_method[HTTP_METHOD_MAX + 1]; /* in capitals; "": none */
    const char *other_path;                 /* in the parsed bytes; NULL: none */
    size_t other_path_len;
    enum http_body body;
    uint64_t length;  /* of HTTP_LENGTH */
    bool is_old;      /* HTTP/1.0 */
    bool has_upgrade; /* an Upgrade field */
    bool is_upgrade;  /* asks for WebSocket, and for nothing else, on this connection */
};

/* Returns 1 if the bytes start with the first line of an HTTP request, 0 if they may be the start
 * of one, -1 if they are not: other protocols begin with words and blanks as well (SMTP). */
int http_head_is_http(const void *data, size_t len);

/* Reads a head. Returns 1, 0 if more bytes are needed, or -EBADMSG. */
int http_head_parse(const char *data, size_t len, struct http_head *ret);

/* Where in the body of a request a stream of bytes is. */
struct http_stream {
    enum http_body body;
    uint64_t left;   /* bytes of the body, or of a chunk */
    unsigned state;  /* of the chunks; see http_head.c */
    unsigned digits; /* of a chunk's size */
};

/* Starts the body that follows a head. */
void http_stream_begin(struct http_stream *stream, const struct http_head *head);

/* Returns how many of the bytes belong to the body, or -EBADMSG. The body is over when
 * stream->body is HTTP_NO_BODY. */
long http_stream_pass(struct http_stream *stream, const char *data, size_t len);
