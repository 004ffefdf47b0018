// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "api/service.h"
#include "base/err.h"
#include "base/json.h"
#include "host/host.h"

int host_service_health(const struct call *call, const json_t *request, json_t **ret_reply,
                        struct err *err)
{
    static const char *const fields[] = { NULL };
    struct host_health health = { 0 };
    int r = json_only_fields(request, fields, err);

    if (r < 0)
        return r;
    host_health(call->host, &health);
    *ret_reply = json_pack(
        "{s:s, s:s, s:I, s:I, s:s, s:o}", "status", "ok", "version", HOLT_VERSION, "sandboxes",
        (json_int_t)health.sandboxes, "poolReady", (json_int_t)health.pool_ready, "runtime",
        health.runtime ? health.runtime : "", "uptimeMs", json_u64(health.uptime_ms));
    return *ret_reply ? 0 : err_sys(err, -ENOMEM, "write the reply");
}
