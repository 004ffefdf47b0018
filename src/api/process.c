// SPDX-License-Identifier: Apache-2.0
#include "host/process/process.h"

#include "api/message/process_request.h"
#include "api/message/sandbox_ref.h"
#include "api/message/terminal_size.h"
#include "api/service.h"
#include "api/stream/process_stream.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "host/machine/machine.h"
#include "host/sandbox/sandbox.h"

enum { SIGNAL_MAX = 64 };

static void machine_unref_slot(struct machine **machine)
{
    machine_unref(*machine);
}

static void process_unref_slot(struct process **process)
{
    process_unref(*process);
}

/* In a throw-away machine, or in a sandbox. */
static int process_find_anywhere(struct host *host, const char *sandbox_id, const char *id,
                                 struct process **ret, struct err *err)
{
    cleanup_with(machine_unref_slot) struct machine *machine = NULL;
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    int r = machine_find(host, sandbox_id, &machine, err);

    if (r == 0)
        return process_find(machine, id, ret, err);
    if (err->kind == ERR_NOT_FOUND)
        r = sandbox_find(host, sandbox_id, &sandbox, err);
    return r < 0 ? r : sandbox_find_process(sandbox, id, ret, err);
}

/* The process that sandboxId and processId name, with a reference. */
static int process_of(const struct call *call, const json_t *request, struct process **ret,
                      struct err *err)
{
    struct process_name name;
    int r = process_name_parse(request, &name, err);

    return r < 0 ? r : process_find_anywhere(call->host, name.sandbox, name.process, ret, err);
}

/* base64_decode makes room for whole groups of three, so the limit itself is checked behind it. */
static int data_get(const json_t *request, struct buf *data, struct err *err)
{
    int r = json_get_bytes(request, "data", data, err);

    if (r < 0)
        return r;
    if (data->len > PROCESS_INPUT_MAX)
        return err_set(err, ERR_EXHAUSTED, "field 'data' is longer than %d bytes",
                       PROCESS_INPUT_MAX);
    return 0;
}

int process_service_send_input(const struct call *call, const json_t *request, json_t **ret_reply,
                               struct err *err)
{
    static const char *const fields[] = { "sandboxId", "processId", "data", "eof", NULL };
    cleanup_with(process_unref_slot) struct process *process = NULL;
    cleanup_with(buf_done) struct buf data = BUF_INIT(PROCESS_INPUT_MAX + 2);
    bool eof = false;
    int r = json_only_fields(request, fields, err);

    (void)ret_reply;
    if (r == 0)
        r = json_get_bool(request, "eof", &eof, err);
    if (r == 0)
        r = data_get(request, &data, err);
    if (r == 0)
        r = process_of(call, request, &process, err);
    if (r < 0 || (data.len == 0 && !eof))
        return r;
    return process_offer_input(process, call->connection_fd, data.data, data.len, eof, err);
}

int process_service_signal(const struct call *call, const json_t *request, json_t **ret_reply,
                           struct err *err)
{
    static const char *const fields[] = { "sandboxId", "processId", "signal", "tree", NULL };
    cleanup_with(process_unref_slot) struct process *process = NULL;
    uint32_t signal = 0;
    bool tree = false;
    int r = json_only_fields(request, fields, err);

    (void)ret_reply;
    if (r == 0)
        r = json_get_u32(request, "signal", &signal, err);
    if (r == 0 && (signal < 1 || signal > SIGNAL_MAX))
        r = err_set(err, ERR_INVALID, "field 'signal' must be from 1 to %d", SIGNAL_MAX);
    if (r == 0)
        r = json_get_bool(request, "tree", &tree, err);
    if (r == 0)
        r = process_of(call, request, &process, err);
    if (r < 0)
        return r;
    return process_signal(process, (int)signal, tree, err);
}

int process_service_resize(const struct call *call, const json_t *request, json_t **ret_reply,
                           struct err *err)
{
    static const char *const fields[] = { "sandboxId", "processId", "size", NULL };
    cleanup_with(process_unref_slot) struct process *process = NULL;
    struct terminal_size size = { 0 };
    const json_t *object = NULL;
    int r = json_only_fields(request, fields, err);

    (void)ret_reply;
    if (r == 0)
        r = json_get_object(request, "size", &object, err);
    if (r == 0 && !object)
        r = err_set(err, ERR_INVALID, "field 'size' is missing");
    if (r == 0)
        r = terminal_size_parse(object, &size, err);
    if (r == 0)
        r = process_of(call, request, &process, err);
    if (r < 0)
        return r;
    return process_resize(process, size.rows, size.columns, err);
}

int process_service_exec(const struct call *call, const json_t *request, struct stream **ret,
                         struct err *err)
{
    cleanup_with(start_request_done) struct start_request wanted = { 0 };
    int r = start_request_parse(request, &wanted, err);

    return r < 0 ? r : process_stream_exec(call, &wanted, ret, err);
}

int process_service_attach(const struct call *call, const json_t *request, struct stream **ret,
                           struct err *err)
{
    struct attach_request wanted = { 0 };
    int r = attach_request_parse(request, &wanted, err);

    if (r == 0 && call->is_read_only && wanted.reader.is_flow)
        r = err_set(err, ERR_DENIED,
                    "a process cannot be made to wait with a token that may only look: 'flow'");
    return r < 0 ? r : process_stream_attach(call, &wanted, ret, err);
}
