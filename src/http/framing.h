/* The framing check: which requests have exactly one reading. A proxy in front of Holt may take
 * another one of several readings, and would pass what it thinks is a body as a request of the next
 * client (request smuggling). */
#pragma once

#include <microhttpd.h>

struct refusal;

/* The first line of a request, as libmicrohttpd keeps it, and its target as the client wrote it. */
struct request_line {
    const char *verb;
    const char *target;
    const char *version;
};

/* Why the header of a request is refused, or NULL. Must be called while the header is complete and
 * nothing of the body was read. */
const struct refusal *framing_check(struct MHD_Connection *connection,
                                    const struct request_line *line);
