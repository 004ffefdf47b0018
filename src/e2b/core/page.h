/* Pages of a list: "limit" and "nextToken" of a query, and the header X-Next-Token. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
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

/* A page of objects of the object store in the order in which they were made, each as make says it
 * (NULL: it is not wanted), and where the next page begins. What goes in between leaves the others.
 */
typedef json_t *(*e2b_page_fn)(const json_t *stored, const void *context);
json_t *e2b_page_list(struct e2b_request *request, const struct e2b_page *page, const json_t *all,
                      bool is_newest_first, e2b_page_fn make, const void *context);
