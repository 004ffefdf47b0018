// SPDX-License-Identifier: Apache-2.0
/* What the host can do, and what it has counted. */
#include "api/message/messages.h"
#include "api/metrics_page.h"
#include "api/service.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "host/core/host.h"
#include "host/machine/runtime_choice.h"

enum { METRICS_MAX = 4 << 20 };

enum { RUNTIMES_MAX = 16 };

int host_service_capabilities(const struct call *call,
                              const struct msg_capabilities_request *request, struct err *err)
{
    const struct runtime_holder holder = { .owner = call->caller->owner };
    struct host_runtime found[RUNTIMES_MAX];
    struct msg_runtime runtimes[RUNTIMES_MAX];
    struct msg_capabilities capabilities;
    struct host_capabilities can;
    struct err ignored;
    size_t count = 0;

    (void)request;
    for (; count < RUNTIMES_MAX && host_runtime_at(call->host, count, &found[count]); count++)
        runtimes[count] = (struct msg_runtime){
            .name = found[count].name,
            .works = found[count].result == 0,
            .problem = found[count].result == 0 ? "" : found[count].problem.msg,
            .allowed = host_check_runtime(call->host, &holder, found[count].name, &ignored) == 0,
            .strength = found[count].strength,
        };
    host_capabilities(call->host, call->caller->owner, &can);
    capabilities = capabilities_message(&can);
    return call_reply(call,
                      MESSAGE(msg_capabilities_response, .capabilities = &capabilities,
                              .storage = can.storage_backend,
                              .default_runtime = can.default_runtime, .runtimes = runtimes,
                              .runtimes_count = count, .limits_from = can.limits_from),
                      err);
}

int host_service_metrics(const struct call *call, const struct msg_metrics_request *request,
                         struct err *err)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(METRICS_MAX);
    int r = metrics_page_fill(call->host, call->listener, call->caller, &text);

    (void)request;
    if (r < 0)
        return err_sys(err, r, "write the metrics");
    return call_reply(call, MESSAGE(msg_metrics_response, .text = text.data), err);
}
