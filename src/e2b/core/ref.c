// SPDX-License-Identifier: Apache-2.0
#include "e2b/core/ref.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "e2b/control/sandbox_json.h"
#include "e2b/core/e2b.h"
#include "host/sandbox/sandbox.h"
#include "http/exchange.h"

static int refuse(const struct e2b_request *request, struct err *err)
{
    return err_refuse(err, CAUSE_SESSION_NOT_FOUND, "sandbox '%.60s' not found",
                      request->params[0]);
}

int e2b_ref_find(struct e2b_request *request, struct err *err)
{
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    char id[SANDBOX_ID_MAX];

    if (request->sandbox)
        return 0;
    if (!e2b_id_to(request->params[0], id) ||
        sandbox_find(request->host, &request->exchange->caller, id, &request->sandbox, err) < 0)
        return refuse(request, err);
    sandbox_get_info(request->sandbox, false, &info);
    return e2b_is_there(&info) ? 0 : refuse(request, err);
}
