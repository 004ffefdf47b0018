// SPDX-License-Identifier: Apache-2.0
/* What the host can do, and what it has counted. */
#include <errno.h>

#include "api/message/messages.h"
#include "api/metrics_page.h"
#include "api/service.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "host/core/host.h"

enum { METRICS_MAX = 4 << 20 };

static json_t *runtimes_json(struct host *host)
{
    json_t *list = json_array();
    struct host_runtime runtime;

    for (size_t i = 0; host_runtime_at(host, i, &runtime); i++)
        (void)json_array_append_new(
            list, json_pack("{s:s, s:b, s:o}", "name", runtime.name, "works", runtime.result == 0,
                            "problem", json_text(runtime.result == 0 ? "" : runtime.problem.msg)));
    return list;
}

int host_service_capabilities(const struct call *call, const json_t *request, json_t **ret_reply,
                              struct err *err)
{
    static const char *const fields[] = { NULL };
    struct host_capabilities can;
    int r = json_only_fields(request, fields, err);

    if (r < 0)
        return r;
    host_capabilities(call->host, &can);
    *ret_reply = json_pack("{s:o, s:s, s:s, s:o, s:s}", "capabilities", capabilities_json(&can),
                           "storage", can.storage_backend, "defaultRuntime", can.default_runtime,
                           "runtimes", runtimes_json(call->host), "limitsFrom", can.limits_from);
    return *ret_reply ? 0 : err_sys(err, -ENOMEM, "write the reply");
}

int host_service_metrics(const struct call *call, const json_t *request, json_t **ret_reply,
                         struct err *err)
{
    static const char *const fields[] = { NULL };
    cleanup_with(buf_done) struct buf text = BUF_INIT(METRICS_MAX);
    int r = json_only_fields(request, fields, err);

    if (r < 0)
        return r;
    r = metrics_page_fill(call->host, call->listener, &text);
    if (r == 0)
        *ret_reply = json_pack("{s:s}", "text", text.data);
    return *ret_reply ? 0 : err_sys(err, r < 0 ? r : -ENOMEM, "write the metrics");
}
