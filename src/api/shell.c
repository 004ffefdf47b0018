// SPDX-License-Identifier: Apache-2.0
#include "host/shell/shell.h"

#include "api/message/process_spec.h"
#include "api/service.h"
#include "api/stream/shell_stream.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "host/sandbox/sandbox.h"

_Static_assert(MSG_SHELL_RUN_REQUEST_NAME_MAX_BYTES <= SHELL_NAME_MAX, "names");

int shell_service_run(const struct call *call, const struct msg_shell_run_request *request,
                      struct stream **ret, struct err *err)
{
    const struct shell_command command = {
        .name = request->name,
        .text = request->command,
        .timeout_ms = request->timeout_ms,
        .user = text_or_null(request->user),
        .tier = text_or_null(request->tier),
        .env = variables_make(request->env, request->env_count, call->arena),
        .cwd = text_or_null(request->cwd),
    };

    return shell_stream_run(call, request->sandbox_id, &command, ret, err);
}

static struct msg_shell shell_message(const struct shell_info *info)
{
    return (struct msg_shell){
        .name = info->name,
        .kind = shell_kind_name(info->kind),
        .process_id = info->process,
        .busy = info->is_busy,
        .waiting = info->waiting,
        .user = info->user,
        .tier = info->tier,
    };
}

/* Calls a function of the sandbox's shells that fills in the info of one. */
static int shell_call(const struct call *call, const char *sandbox_id, const char *name,
                      int (*function)(struct sandbox *, const char *, struct shell_info *,
                                      struct err *),
                      struct shell_info *ret, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    int r = sandbox_find(call->host, call->caller, sandbox_id, &sandbox, err);

    return r < 0 ? r : function(sandbox, name, ret, err);
}

int shell_service_open(const struct call *call, const struct msg_shell_open_request *request,
                       struct err *err)
{
    const struct shell_command command = {
        .name = request->name,
        .user = text_or_null(request->user),
        .tier = text_or_null(request->tier),
        .env = variables_make(request->env, request->env_count, call->arena),
        .cwd = text_or_null(request->cwd),
    };
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    struct shell_info info = { 0 };
    struct msg_shell shell;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0)
        r = shell_open_with(sandbox, &command, &info, err);
    if (r < 0)
        return r;
    shell = shell_message(&info);
    return call_reply(call, MESSAGE(msg_shell_open_response, .shell = &shell), err);
}

int shell_service_get(const struct call *call, const struct msg_shell_get_request *request,
                      struct err *err)
{
    struct shell_info info = { 0 };
    struct msg_shell shell;
    int r = shell_call(call, request->sandbox_id, request->name, shell_get, &info, err);

    if (r < 0)
        return r;
    shell = shell_message(&info);
    return call_reply(call, MESSAGE(msg_shell_get_response, .shell = &shell), err);
}

int shell_service_remove(const struct call *call, const struct msg_shell_remove_request *request,
                         struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    return r < 0 ? r : shell_remove(sandbox, request->name, err);
}

int shell_service_list(const struct call *call, const struct msg_shell_list_request *request,
                       struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_free struct shell_info *infos = NULL;
    struct msg_shell *shells;
    size_t count = 0;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0)
        r = shell_list(sandbox, &infos, &count, err);
    if (r < 0)
        return r;
    shells = arena_take(call->arena, count, sizeof(*shells));
    for (size_t i = 0; i < count; i++)
        shells[i] = shell_message(&infos[i]);
    return call_reply(
        call, MESSAGE(msg_shell_list_response, .shells = shells, .shells_count = count), err);
}
