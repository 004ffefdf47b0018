// SPDX-License-Identifier: Apache-2.0
/* What envd answers by itself. */
#include "api/e2b.h"
#include "base/cleanup.h"

/* That it is asked at all says that the sandbox runs. */
static enum MHD_Result health(struct e2b_request *request)
{
    return e2b_reply_empty(request, MHD_HTTP_NO_CONTENT);
}

static const struct e2b_route routes[] = {
    { "GET", "/health", .answer = health, .is_open = true },
};

const struct e2b_routes e2b_envd_routes = { routes, ARRAY_SIZE(routes) };
