// SPDX-License-Identifier: Apache-2.0
#include "api/route.h"

#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"

/* Decodes the request and calls the method. */
#define CALL(type, ...)                                                                            \
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(MESSAGE_BYTES_MAX);                   \
    struct call with = *call;                                                                      \
    struct type request;                                                                           \
    int r = schema_decode(SCHEMA(type, &request), json, DECODE_REQUEST, &arena, err);              \
                                                                                                   \
    with.message = json;                                                                           \
    with.arena = &arena;                                                                           \
    return r < 0 ? r : __VA_ARGS__

#define UNARY(function, type)                                                                      \
    static int function##_call(const struct call *call, const json_t *json, json_t **ret_reply,    \
                               struct err *err)                                                    \
    {                                                                                              \
        (void)ret_reply;                                                                           \
        CALL(type, function(&with, &request, err));                                                \
    }
#define STREAM(function, type)                                                                     \
    static int function##_call(const struct call *call, const json_t *json, struct stream **ret,   \
                               struct err *err)                                                    \
    {                                                                                              \
        CALL(type, function(&with, &request, ret, err));                                           \
    }

STREAM(event_service_watch, msg_watch_request)
STREAM(process_service_exec, msg_exec_request)
UNARY(process_service_start, msg_start_request)
UNARY(process_service_launch, msg_launch_request)
UNARY(process_service_get, msg_get_process_request)
UNARY(process_service_list, msg_list_processes_request)
STREAM(process_service_attach, msg_attach_request)
UNARY(process_service_wait, msg_wait_request)
UNARY(process_service_send_input, msg_send_input_request)
UNARY(process_service_signal, msg_signal_request)
UNARY(process_service_resize, msg_resize_request)
UNARY(volume_service_create, msg_volume_create_request)
UNARY(volume_service_list, msg_volume_list_request)
UNARY(volume_service_remove, msg_volume_remove_request)
UNARY(sandbox_service_create, msg_create_sandbox_request)
UNARY(sandbox_service_get, msg_get_sandbox_request)
UNARY(sandbox_service_list, msg_list_sandboxes_request)
UNARY(sandbox_service_pause, msg_sandbox_request)
UNARY(sandbox_service_resume, msg_sandbox_request)
UNARY(sandbox_service_stop, msg_sandbox_request)
UNARY(sandbox_service_start, msg_sandbox_request)
UNARY(sandbox_service_destroy, msg_sandbox_request)
UNARY(sandbox_service_fork, msg_fork_request)
UNARY(sandbox_service_stats, msg_stats_request)
STREAM(sandbox_service_watch_stats, msg_watch_stats_request)
STREAM(sandbox_service_run, msg_run_request)
UNARY(host_service_health, msg_health_request)
UNARY(host_service_capabilities, msg_capabilities_request)
UNARY(host_service_metrics, msg_metrics_request)
STREAM(host_service_audit, msg_audit_request)
STREAM(port_service_forward, msg_forward_request)
UNARY(port_service_list, msg_list_ports_request)
STREAM(shell_service_run, msg_shell_run_request)
UNARY(shell_service_open, msg_shell_open_request)
UNARY(shell_service_list, msg_shell_list_request)
UNARY(shell_service_remove, msg_shell_remove_request)
UNARY(snapshot_service_turn_complete, msg_turn_complete_request)
UNARY(snapshot_service_create, msg_create_snapshot_request)
UNARY(snapshot_service_rollback, msg_rollback_request)
UNARY(snapshot_service_list, msg_list_snapshots_request)
UNARY(snapshot_service_remove, msg_remove_snapshot_request)
STREAM(snapshot_service_diff, msg_diff_request)
UNARY(template_service_list, msg_list_templates_request)
UNARY(template_service_remove, msg_remove_template_request)
UNARY(template_service_commit, msg_commit_request)
UNARY(token_service_create, msg_token_create_request)
UNARY(token_service_list, msg_token_list_request)
UNARY(token_service_remove, msg_token_remove_request)

static int template_service_import_call(const struct call *call, const json_t *json,
                                        struct stream **ret, struct err *err)
{
    if (!call->is_local)
        return err_set(err, ERR_DENIED, "this method is only allowed over the unix socket");
    CALL(msg_import_request, template_service_import(&with, &request, ret, err));
}

static const struct route routes[] = {
    { "/holt.v1.SandboxService/Create", .unary = sandbox_service_create_call },
    { "/holt.v1.SandboxService/Get", .unary = sandbox_service_get_call, .is_read_only = true },
    { "/holt.v1.SandboxService/List", .unary = sandbox_service_list_call, .is_read_only = true },
    { "/holt.v1.SandboxService/Pause", .unary = sandbox_service_pause_call },
    { "/holt.v1.SandboxService/Resume", .unary = sandbox_service_resume_call },
    { "/holt.v1.SandboxService/Stop", .unary = sandbox_service_stop_call },
    { "/holt.v1.SandboxService/Start", .unary = sandbox_service_start_call },
    { "/holt.v1.SandboxService/Destroy", .unary = sandbox_service_destroy_call },
    { "/holt.v1.SandboxService/Fork", .unary = sandbox_service_fork_call },
    { "/holt.v1.SandboxService/Stats", .unary = sandbox_service_stats_call, .is_read_only = true },
    { "/holt.v1.SandboxService/WatchStats", .stream = sandbox_service_watch_stats_call,
      .is_read_only = true },
    { "/holt.v1.SandboxService/Run", .stream = sandbox_service_run_call, .can_be_raw = true },
    { "/holt.v1.SnapshotService/TurnComplete", .unary = snapshot_service_turn_complete_call },
    { "/holt.v1.SnapshotService/Create", .unary = snapshot_service_create_call },
    { "/holt.v1.SnapshotService/Rollback", .unary = snapshot_service_rollback_call },
    { "/holt.v1.SnapshotService/List", .unary = snapshot_service_list_call, .is_read_only = true },
    { "/holt.v1.SnapshotService/Remove", .unary = snapshot_service_remove_call },
    { "/holt.v1.SnapshotService/Diff", .stream = snapshot_service_diff_call, .is_read_only = true },
    { "/holt.v1.ProcessService/Exec", .stream = process_service_exec_call, .can_be_raw = true },
    { "/holt.v1.ProcessService/Start", .unary = process_service_start_call },
    { "/holt.v1.ProcessService/Launch", .unary = process_service_launch_call },
    { "/holt.v1.ProcessService/Get", .unary = process_service_get_call, .is_read_only = true },
    { "/holt.v1.ProcessService/List", .unary = process_service_list_call, .is_read_only = true },
    { "/holt.v1.ProcessService/Attach", .stream = process_service_attach_call,
      .is_read_only = true },
    { "/holt.v1.ProcessService/Wait", .unary = process_service_wait_call, .is_read_only = true },
    { "/holt.v1.ProcessService/SendInput", .unary = process_service_send_input_call },
    { "/holt.v1.ProcessService/Signal", .unary = process_service_signal_call },
    { "/holt.v1.ProcessService/Resize", .unary = process_service_resize_call },
    { "/holt.v1.PortService/Forward", .stream = port_service_forward_call },
    { "/holt.v1.PortService/List", .unary = port_service_list_call, .is_read_only = true },
    { "/holt.v1.ShellService/Run", .stream = shell_service_run_call },
    { "/holt.v1.ShellService/Open", .unary = shell_service_open_call },
    { "/holt.v1.ShellService/List", .unary = shell_service_list_call, .is_read_only = true },
    { "/holt.v1.ShellService/Remove", .unary = shell_service_remove_call },
    { "/holt.v1.FileService/Stat", .unary = file_service_stat, .is_read_only = true },
    { "/holt.v1.FileService/List", .unary = file_service_list, .is_read_only = true },
    { "/holt.v1.FileService/Read", .stream = file_service_read, .can_be_raw = true,
      .is_read_only = true },
    { "/holt.v1.FileService/Write", .upload = file_service_write, .can_be_raw = true },
    { "/holt.v1.FileService/MakeDir", .unary = file_service_make_dir },
    { "/holt.v1.FileService/Move", .unary = file_service_move },
    { "/holt.v1.FileService/Remove", .unary = file_service_remove },
    { "/holt.v1.FileService/Watch", .stream = file_service_watch, .is_read_only = true },
    { "/holt.v1.FileService/Pull", .stream = file_service_pull, .can_be_raw = true,
      .is_read_only = true },
    { "/holt.v1.FileService/Push", .upload = file_service_push, .can_be_raw = true },
    /* What a tool may do is known when it is: a token that may only read gets those that look. */
    { "/holt.v1.ToolService/Execute", .unary = tool_service_execute, .is_read_only = true,
      .is_large = true },
    { "/holt.v1.ToolService/ExecuteStream", .stream = tool_service_execute_stream,
      .is_read_only = true, .is_large = true },
    { "/holt.v1.ToolService/List", .unary = tool_service_list, .is_read_only = true },
    { "/holt.v1.ToolService/ReadOutput", .unary = tool_service_read_output, .is_read_only = true },
    { "/holt.v1.TemplateService/Import", .stream = template_service_import_call },
    { "/holt.v1.TemplateService/List", .unary = template_service_list_call, .is_read_only = true },
    { "/holt.v1.TemplateService/Remove", .unary = template_service_remove_call },
    { "/holt.v1.TemplateService/Commit", .unary = template_service_commit_call },
    { "/holt.v1.VolumeService/Create", .unary = volume_service_create_call },
    { "/holt.v1.VolumeService/List", .unary = volume_service_list_call, .is_read_only = true },
    { "/holt.v1.VolumeService/Remove", .unary = volume_service_remove_call },
    { "/holt.v1.TokenService/Create", .unary = token_service_create_call },
    { "/holt.v1.TokenService/List", .unary = token_service_list_call },
    { "/holt.v1.TokenService/Remove", .unary = token_service_remove_call },
    { "/holt.v1.HostService/Health", .unary = host_service_health_call, .is_read_only = true },
    { "/holt.v1.HostService/Capabilities", .unary = host_service_capabilities_call,
      .is_read_only = true },
    { "/holt.v1.HostService/Metrics", .unary = host_service_metrics_call, .is_read_only = true },
    { "/holt.v1.EventService/Watch", .stream = event_service_watch_call, .is_read_only = true },
    { "/holt.v1.HostService/Audit", .stream = host_service_audit_call, .is_read_only = true },
};

_Static_assert(ARRAY_SIZE(routes) <= ROUTES_MAX, "call_stats must have room for every method");

const struct route *route_find(const char *path)
{
    for (size_t i = 0; i < ARRAY_SIZE(routes); i++)
        if (strcmp(routes[i].path, path) == 0)
            return &routes[i];
    return NULL;
}

const struct route *route_at(size_t index)
{
    return index < ARRAY_SIZE(routes) ? &routes[index] : NULL;
}

size_t route_index(const struct route *route)
{
    return (size_t)(route - routes);
}
