/* Which handler a request of the E2B protocol goes to. */
#pragma once

#include <stddef.h>

#include "e2b/core/target.h"

struct e2b_request;
struct e2b_route;

/* Finds the route for the request's target, verb and path, and fills in its parameters. NULL: none;
 * *ret_has_path says whether the path exists with another verb. */
const struct e2b_route *e2b_route_find(struct e2b_request *request, bool *ret_has_path);

/* All of them in turn; NULL behind the last. *ret_place is "control", "envd" or "port". */
const struct e2b_route *e2b_route_at(size_t index, const char **ret_place);
size_t e2b_route_index(const struct e2b_route *route);

/* Undoes percent-encoding. A new text, NULL where it would have a NUL or is not UTF-8. With plus, a
 * '+' is a blank, as forms have it. */
char *e2b_unescape(const char *text, size_t len, bool plus);
