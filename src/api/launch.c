// SPDX-License-Identifier: Apache-2.0
/* ProcessService/Launch: a process with a port, and the wait until it answers there. */

#include "api/message/process_messages.h"
#include "api/message/process_spec.h"
#include "api/message/process_start.h"
#include "api/service.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "host/process/record.h"
#include "host/process/service.h"
#include "host/sandbox/sandbox.h"

enum { READY_TIMEOUT_MS = 30 * 1000 };

static int spec_check(const struct msg_launch_request *request, const struct process_spec *spec,
                      struct err *err)
{
    if (request->ready && spec->port == 0)
        return err_set(err, ERR_INVALID, "field 'ready' needs a 'port'");
    if (spec->host_port > 0 && spec->port == 0)
        return err_set(err, ERR_INVALID, "field 'hostPort' needs a 'port'");
    if (spec->has_terminal && spec->restart != RESTART_NO)
        return err_set(err, ERR_INVALID, "a process with a terminal cannot be started again");
    if (spec->tier && (spec->restart != RESTART_NO || spec->port))
        return err_set(err, ERR_UNSUPPORTED,
                       "a process with a tier can neither be started again nor have a port");
    return 0;
}

static int spec_fill(const struct call *call, const struct msg_launch_request *request,
                     struct process_spec *ret, struct err *err)
{
    int r = process_spec_fill(request->process, call->arena, ret, err);

    if (r < 0)
        return r;
    ret->key = text_or_null(request->idempotency_key);
    ret->port = (uint16_t)request->port;
    ret->host_port = (uint16_t)request->host_port;
    ret->restart = (enum restart)request->restart;
    ret->is_detached = true;
    r = listen_port_check(call->caller, ret->host_port, err);
    return r < 0 ? r : spec_check(request, ret, err);
}

static int ready_wait(const struct call *call, const struct msg_ready *ready,
                      struct sandbox *sandbox, struct record *record, enum readiness *ret,
                      struct err *err)
{
    const struct readiness_spec spec = {
        .http_path = ready->http_path,
        .timeout_ms = ready->timeout_ms > 0 ? ready->timeout_ms : READY_TIMEOUT_MS,
        .watch_fd = call->connection_fd,
    };

    return service_wait_ready(sandbox, record, &spec, ret, err);
}

static int launch(struct sandbox *sandbox, const struct process_spec *spec, struct record **ret,
                  bool *ret_joined, struct err *err)
{
    int r = service_launch(sandbox, spec, ret, err);

    *ret_joined = r < 0 && err->cause == CAUSE_PROCESS_EXISTS;
    return *ret_joined ? process_join(sandbox, spec, ret, err) : r;
}

static enum msg_readiness readiness_message(enum readiness readiness)
{
    static const enum msg_readiness messages[] = {
        [SERVICE_READY] = MSG_READINESS_READY,
        [SERVICE_STARTING] = MSG_READINESS_STARTING,
        [SERVICE_ENDED] = MSG_READINESS_ENDED_EARLY,
    };

    return messages[readiness];
}

int process_service_launch(const struct call *call, const struct msg_launch_request *request,
                           struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(record_unref_slot) struct record *record = NULL;
    enum readiness readiness = SERVICE_STARTING;
    struct msg_process_info message;
    struct process_spec spec;
    struct record_info info;
    const char *reason = NULL;
    bool is_joined = false;
    int r = spec_fill(call, request, &spec, err);

    if (r == 0)
        r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);
    if (r == 0)
        r = launch(sandbox, &spec, &record, &is_joined, err);
    if (r == 0 && request->ready)
        r = ready_wait(call, request->ready, sandbox, record, &readiness, err);
    if (r < 0)
        return r;
    if (request->ready && readiness == SERVICE_STARTING)
        reason = err->msg;
    record_get(record, &info);
    message = process_info_message(&info, false, call->arena);
    return call_reply(call,
                      MESSAGE(msg_launch_response, .process = &message,
                              .readiness = readiness_message(readiness), .joined = is_joined,
                              .reason = reason),
                      err);
}
