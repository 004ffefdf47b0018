/* Headers on their way through: which of them are between two neighbours only and stay behind, and
 * the head of a request as a server inside a sandbox gets it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

struct port_header {
    const char *name, *value;
};

/* Whether it is a token, as names of headers are. */
bool port_header_is_name(const char *name);

/* Whether this word is in a list with commas, as in the header Connection. Case does not matter. */
bool port_header_lists(const char *list, const char *word);

/* Whether a header is for the next neighbour only: one of those that always are. (The header
 * Connection may name others.) */
bool port_header_is_hop(const char *name);

/* Whether a header of a reply may go to the client; *out (cleared) gets its value. A server in a
 * sandbox must not act on other hosts of the domain: its cookies are for its own host, none of them
 * is the one that logs in to ports, and Alt-Svc and Clear-Site-Data stay behind. */
bool port_header_passes(const char *name, const char *value, struct buf *out);

struct port_request {
    const char *verb;
    const char *target; /* as it stood in the request line */
    uint16_t port;
    const char *mask_host; /* for the header Host, with ${PORT} in it; NULL: as the client said */
    bool is_upgrade;       /* requests an upgrade, which is possible */
    bool is_chunked;       /* its body has no length yet */
    const struct port_header *headers;
    size_t header_count;
};

/* Appends the request line and all forwarded headers, unchanged and in order, with the empty line.
 * Returns 0, -EINVAL if a part is not valid in a request, or an error of buf_add. */
int port_request_write(const struct port_request *request, struct buf *out);
