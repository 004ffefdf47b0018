/* The fields of HTTP messages, the heads of replies, and bodies as they are sent. Replies are read
 * strictly, as requests are (http_head.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { HTTP_FIELDS_MAX = 128, HTTP_MESSAGE_MAX = 64 * 1024, HTTP_TRAILER_MAX = 8 * 1024 };

struct http_text {
    const char *at;
    size_t len;
};

struct http_field {
    struct http_text name, value;
};

struct http_fields {
    struct http_field items[HTTP_FIELDS_MAX];
    size_t count;
};

bool http_text_is(struct http_text text, const char *word);

/* Returns whether a comma-separated list has the word. */
bool http_list_has(struct http_text list, const char *word);

/* Returns the first field of this name, or NULL. */
const struct http_field *http_field_find(const struct http_fields *fields, const char *name);

/* Returns whether the field is about one connection only, and is not passed on. */
bool http_field_is_hop(const struct http_fields *fields, struct http_text name);

/* Reads the lines between the first line of a head and its empty line. Returns 0 or -EBADMSG. */
int http_fields_parse(const char *head, size_t size, struct http_fields *ret);

enum http_framing { HTTP_EMPTY, HTTP_SIZED, HTTP_CHUNKS, HTTP_UNTIL_CLOSE };

struct http_reply {
    size_t size; /* of the head */
    unsigned status;
    struct http_text reason;
    struct http_fields fields;
    enum http_framing framing;
    uint64_t length; /* of HTTP_SIZED */
    bool has_length; /* a Content-Length, also where there is no body */
    bool ends;       /* the server closes the connection behind it */
};

/* Reads the head of a reply to a request (is_head: of the method HEAD). Returns 1, 0 if more bytes
 * are needed, or -EBADMSG. */
int http_reply_parse(const char *data, size_t len, bool is_head, struct http_reply *ret);

/* Where in a body a stream of bytes is. */
struct http_body_reader {
    enum http_framing framing;
    uint64_t left; /* bytes of the body, or of a chunk */
    unsigned state, digits;
    size_t line_len; /* of the trailers */
    bool is_done;
};

void http_body_start(struct http_body_reader *reader, enum http_framing framing, uint64_t length);

/* Takes bytes of a body. Returns how many were used; ret_data are those of them that belong to the
 * content. Or -EBADMSG. Trailers and extensions of chunks are read and dropped. */
long http_body_take(struct http_body_reader *reader, const char *data, size_t len,
                    struct http_text *ret_data);

/* Appends one chunk; a chunk of no bytes ends the body. */
int http_chunk_add(struct buf *out, const char *data, size_t len);

/* A message that is written anew: fields as offsets into one text. */
struct http_draft {
    struct buf text;
    size_t count;
    struct {
        size_t name, name_len, value, value_len;
    } items[HTTP_FIELDS_MAX + 64];
};

void http_draft_init(struct http_draft *draft);

/* Wipes it: it may have the value of a secret. */
void http_draft_done(struct http_draft *draft);

/* Appends a field. Returns 0 or -ENOBUFS. */
int http_draft_add(struct http_draft *draft, struct http_text name, struct http_text value);
int http_draft_add_text(struct http_draft *draft, const char *name, const char *value);

/* Removes the fields of this name. */
void http_draft_remove(struct http_draft *draft, const char *name);
struct http_text http_draft_name(const struct http_draft *draft, size_t i);
struct http_text http_draft_value(const struct http_draft *draft, size_t i);

/* Appends the fields and the empty line as HTTP/1. */
int http_draft_write(const struct http_draft *draft, struct buf *out);
