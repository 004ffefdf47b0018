/* Pre-signed URLs: made with a sandbox's access token, for clients without one. */
#pragma once

#include <stdbool.h>

struct e2b_request;

/* Whether the request's query has a signature that this token makes, for the path and user in the
 * query and for reading (GET, HEAD) or writing. Whether it has expired is another question. */
bool e2b_signature_matches(const struct e2b_request *request, const char *token);

/* Whether the query's "signature_expiration" is over; false where there is none. */
bool e2b_signature_is_over(const struct e2b_request *request);
