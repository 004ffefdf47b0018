/* multipart/form-data, taken apart as it comes: a form with files in it. Nothing of a file is kept.
 *
 *   --BOUNDARY CRLF
 *   Content-Disposition: form-data; name="file"; filename="a.txt" CRLF
 *   (other headers) CRLF CRLF
 *   bytes
 *   CRLF --BOUNDARY CRLF | CRLF --BOUNDARY--
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

struct err;

enum {
    MULTIPART_NAME_MAX = 4096,        /* bytes of a name, and of a file's */
    MULTIPART_HEADER_MAX = 16 * 1024, /* of one part */
    MULTIPART_BOUNDARY_MAX = 200,
};

/* Each returns 0 or a negative errno with err set, which ends it all. */
struct multipart_ops {
    /* name and filename are "" where the part has none. */
    int (*begin)(void *context, const char *name, const char *filename, struct err *err);
    int (*data)(void *context, const void *data, size_t len, struct err *err);
    int (*end)(void *context, struct err *err);
};

struct multipart {
    const struct multipart_ops *ops;
    void *context;
    enum { MULTIPART_BEFORE, MULTIPART_LINE, MULTIPART_HEADERS, MULTIPART_BODY, MULTIPART_OVER } at;
    char delimiter[MULTIPART_BOUNDARY_MAX + 5]; /* CRLF, two dashes, the boundary */
    size_t delimiter_len;
    struct buf in; /* not consumed yet */
};

/* By the Content-Type of the request. ERR_INVALID when it names no boundary. The caller calls
 * multipart_done, also when it fails. */
int multipart_init(struct multipart *form, const char *content_type,
                   const struct multipart_ops *ops, void *context, struct err *err);
int multipart_feed(struct multipart *form, const void *data, size_t len, struct err *err);

/* Nothing more comes: ERR_INVALID when something is missing. */
int multipart_finish(const struct multipart *form, struct err *err);
void multipart_done(struct multipart *form);
