// SPDX-License-Identifier: Apache-2.0
/* The control API: teams. An owner is a team, and the key is the one that the caller has shown. */
#include "base/cleanup.h"
#include "e2b/core/e2b.h"
#include "http/exchange.h"

static enum MHD_Result list(struct e2b_request *request)
{
    const char *key = e2b_header(request, "X-API-KEY");
    const char *owner = request->exchange->caller.owner;

    return e2b_reply_json(request, MHD_HTTP_OK,
                          json_pack("[{s:s, s:s, s:s, s:b}]", "teamID", owner, "name", owner,
                                    "apiKey", key ? key : "", "isDefault", 1));
}

static const struct e2b_route routes[] = {
    { "GET", "/teams", .answer = list },
};

const struct e2b_routes e2b_team_routes = { routes, ARRAY_SIZE(routes) };
