/* The services: message in, host call, message out. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "wire/holt_v1.h"

struct arena;
struct buf;
struct err;
struct host;
struct listener;
struct stream;
struct token_store;
struct upload;

/* What a service knows of the call besides its message. */
struct call {
    struct host *host;
    const struct listener *listener;
    struct token_store *tokens;
    bool is_local;         /* it came over the unix socket */
    bool is_read_only;     /* the token is read-only */
    bool is_raw;           /* the connection is handed over to the stream, which makes frames */
    int connection_fd;     /* hangs up when the client goes away */
    struct buf *out;       /* of a unary call: a service may write the reply here as JSON text */
    const json_t *message; /* the request as it came */
    struct arena *arena;   /* for what lives as long as the request */
};

/* Writes the reply of a unary method: 0, or a negative errno with err set. */
int call_reply(const struct call *call, const struct schema *schema, const void *message,
               struct err *err);

/* Answers one message with one. *ret_reply left NULL stands for the text in call->out, or for an
 * empty message. */
typedef int unary_fn(const struct call *call, const json_t *request, json_t **ret_reply,
                     struct err *err);

/* Answers one message with a stream. The request is gone when the stream is first read. */
typedef int stream_fn(const struct call *call, const json_t *request, struct stream **ret,
                      struct err *err);

/* Takes a stream of messages, of which this is the first, and answers with one (http/upload.h). */
typedef int upload_fn(const struct call *call, const json_t *first, struct upload **ret,
                      struct err *err);

stream_fn file_service_read, file_service_pull, file_service_watch;
upload_fn file_service_write, file_service_push;
unary_fn file_service_stat, file_service_list, file_service_make_dir, file_service_move,
    file_service_remove;

unary_fn tool_service_execute, tool_service_list, tool_service_read_output;
stream_fn tool_service_execute_stream;

#define UNARY(function, type)                                                                      \
    int function(const struct call *call, const struct type *request, struct err *err);
#define STREAM(function, type)                                                                     \
    int function(const struct call *call, const struct type *request, struct stream **ret,         \
                 struct err *err);

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
STREAM(template_service_import, msg_import_request)
UNARY(template_service_list, msg_list_templates_request)
UNARY(template_service_remove, msg_remove_template_request)
UNARY(template_service_commit, msg_commit_request)
UNARY(token_service_create, msg_token_create_request)
UNARY(token_service_list, msg_token_list_request)
UNARY(token_service_remove, msg_token_remove_request)

#undef UNARY
#undef STREAM
