// SPDX-License-Identifier: Apache-2.0
/* Ports of programs in sandboxes. */
#include "api/e2b.h"
#include "base/cleanup.h"

static enum MHD_Result proxy(struct e2b_request *request)
{
    return e2b_reply_json(request, MHD_HTTP_BAD_GATEWAY,
                          json_pack("{s:s, s:s, s:i, s:i}", "sandboxId", request->place.sandbox,
                                    "message", "The sandbox is running but port is not open",
                                    "port", (int)request->place.port, "code",
                                    MHD_HTTP_BAD_GATEWAY));
}

static const struct e2b_route routes[] = {
    { "*", "/*", .answer = proxy },
};

const struct e2b_routes e2b_port_routes = { routes, ARRAY_SIZE(routes) };
