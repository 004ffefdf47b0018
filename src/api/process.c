// SPDX-License-Identifier: Apache-2.0
#include "host/process/process.h"

#include <signal.h>

#include "api/message/process_spec.h"
#include "api/service.h"
#include "api/stream/process_stream.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "host/machine/machine.h"
#include "host/process/viewer.h"
#include "host/sandbox/sandbox.h"

/* In a throw-away machine, or in a sandbox. */
static int process_find_anywhere(const struct call *call, const char *sandbox_id, const char *id,
                                 struct process **ret, struct err *err)
{
    cleanup_with(machine_unref_slot) struct machine *machine = NULL;
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    int r = machine_find(call->host, call->caller, sandbox_id, &machine, err);

    if (r == 0)
        return process_find(machine, id, ret, err);
    if (err->kind == ERR_NOT_FOUND)
        r = sandbox_find(call->host, call->caller, sandbox_id, &sandbox, err);
    return r < 0 ? r : sandbox_find_process(sandbox, id, ret, err);
}

int process_service_send_input(const struct call *call,
                               const struct msg_send_input_request *request, struct err *err)
{
    cleanup_with(process_unref_slot) struct process *process = NULL;
    int r = process_find_anywhere(call, request->sandbox_id, request->process_id, &process, err);

    if (r < 0 || (request->data.len == 0 && !request->eof))
        return r;
    if (request->viewer != 0 && !viewer_is_first(process, request->viewer))
        return 0;
    return process_offer_input(process, call->connection_fd, request->data.data, request->data.len,
                               request->eof, err);
}

int process_service_signal(const struct call *call, const struct msg_signal_request *request,
                           struct err *err)
{
    cleanup_with(process_unref_slot) struct process *process = NULL;
    int r = process_find_anywhere(call, request->sandbox_id, request->process_id, &process, err);

    return r < 0 ? r
                 : process_signal(process, request->signal ? request->signal : SIGTERM,
                                  request->tree, err);
}

int process_service_resize(const struct call *call, const struct msg_resize_request *request,
                           struct err *err)
{
    const struct terminal_size size = { (uint16_t)request->size->rows,
                                        (uint16_t)request->size->columns };
    cleanup_with(process_unref_slot) struct process *process = NULL;
    int r = process_find_anywhere(call, request->sandbox_id, request->process_id, &process, err);

    return r < 0 ? r : viewer_resize(process, request->viewer, size, err);
}

int process_service_exec(const struct call *call, const struct msg_exec_request *request,
                         struct stream **ret, struct err *err)
{
    struct process_spec spec;
    int r = process_spec_fill(request->process, call->arena, &spec, err);

    if (r < 0)
        return r;
    spec.key = text_or_null(request->idempotency_key);
    return process_stream_exec(call, request->sandbox_id, &spec, ret, err);
}

int process_service_attach(const struct call *call, const struct msg_attach_request *request,
                           struct stream **ret, struct err *err)
{
    if (request->has_replay_bytes && (request->has_stdout_offset || request->has_stderr_offset))
        return err_set(err, ERR_INVALID, "field 'replayBytes' excludes offsets");
    if (!caller_may_change(call->caller) && request->flow)
        return err_set(err, ERR_DENIED,
                       "field 'flow' makes the process wait, which a read-only token may not do");
    if (!caller_may_change(call->caller) && request->size)
        return err_set(err, ERR_DENIED,
                       "field 'size' resizes the terminal, which a read-only token may not do");
    return process_stream_attach(call, request, ret, err);
}
