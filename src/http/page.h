/* What is fetched with GET and is no call: plain pages for monitors. */
#pragma once

#include <stdbool.h>

struct buf;
struct host;

struct page {
    const char *path;
    const char *type; /* of its content */
    bool is_open;     /* to everybody: no token is asked for on TCP either */

    /* Appends the page: 0, -ENOBUFS or -ENOMEM. */
    int (*fill)(struct host *host, struct buf *out);
};

/* The page at this path, or NULL; also NULL unless the verb is GET or HEAD. */
const struct page *page_find(const char *path, const char *verb);
