/* What plain downloads and uploads share: tags and errors. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>

struct err;
struct exchange;

/* Adds ETag (tag "": none), and headers that keep browsers from showing the body as a page. */
void plain_headers_add(struct MHD_Response *response, const char *tag);

/* Whether a header (If-Match, If-None-Match) has this tag, in quotes, in its list. */
bool plain_tag_matches(const struct exchange *exchange, const char *header, const char *tag);

/* Sends an error in the form of the API. status 0: the one of its kind. */
enum MHD_Result plain_fail(struct exchange *exchange, const struct err *err, unsigned status,
                           void (*headers_add)(struct MHD_Response *response));
