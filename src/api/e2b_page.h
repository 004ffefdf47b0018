/* Pages of a list: "limit" and "nextToken" of a query, and the header X-Next-Token. */
#pragma once

#include <jansson.h>
#include <stddef.h>

struct e2b_request;
struct err;

enum { E2B_PAGE_MAX = 100 };

struct e2b_page {
    size_t limit;
    const char *after; /* the key of the last one of the page before; NULL: from the beginning */
};

int e2b_page_parse(const struct e2b_request *request, struct e2b_page *ret, struct err *err);

/* More is to come behind the one with this key. */
void e2b_page_more(struct e2b_request *request, const char *key);
