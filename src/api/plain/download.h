/* The plain download of a file of a sandbox, or of a directory as a tar archive. */
#pragma once

#include <microhttpd.h>

struct caller;
struct exchange;
struct host;

struct download_spec {
    struct host *host;
    const struct caller *caller;
    const char *sandbox; /* id or name */
    const char *path;
    const char *user; /* whose rights apply; "": root */

    /* Adds further headers to every reply; NULL: none. */
    void (*headers_add)(struct MHD_Response *response);
};

/* Answers the request with the file: 200 with its tag as ETag, 304 if If-None-Match has the tag, or
 * an error in the form of the API. Browsers save it and never show it as a page. */
enum MHD_Result download_answer(struct exchange *exchange, const struct download_spec *spec);
