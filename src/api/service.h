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
    bool is_local;     /* it came over the unix socket */
    bool is_read_only; /* the token is read-only */
    bool is_raw;       /* the connection is handed over to the stream, which makes frames */
    int connection_fd; /* hangs up when the client goes away */
    struct buf *out;   /* of a unary call: a service may write the reply here as JSON text */
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

unary_fn host_service_health, host_service_capabilities, host_service_metrics;
stream_fn host_service_audit;
stream_fn event_service_watch;

unary_fn sandbox_service_create, sandbox_service_get, sandbox_service_list, sandbox_service_pause,
    sandbox_service_resume, sandbox_service_stop, sandbox_service_start, sandbox_service_destroy,
    sandbox_service_fork;
stream_fn sandbox_service_run;
unary_fn sandbox_service_stats;
stream_fn sandbox_service_watch_stats;

unary_fn snapshot_service_turn_complete, snapshot_service_create, snapshot_service_rollback,
    snapshot_service_list, snapshot_service_remove;
stream_fn snapshot_service_diff;

stream_fn process_service_exec, process_service_attach;
unary_fn process_service_start, process_service_launch, process_service_get, process_service_list,
    process_service_wait, process_service_send_input, process_service_signal,
    process_service_resize;

stream_fn port_service_forward;
unary_fn port_service_list;

stream_fn shell_service_run;
unary_fn shell_service_open, shell_service_list, shell_service_remove;

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

UNARY(token_service_create, msg_token_create_request)
UNARY(token_service_list, msg_token_list_request)
UNARY(token_service_remove, msg_token_remove_request)
UNARY(volume_service_create, msg_volume_create_request)
UNARY(volume_service_list, msg_volume_list_request)
UNARY(volume_service_remove, msg_volume_remove_request)
STREAM(template_service_import, msg_import_request)
UNARY(template_service_list, msg_list_templates_request)
UNARY(template_service_remove, msg_remove_template_request)
UNARY(template_service_commit, msg_commit_request)

#undef UNARY
#undef STREAM
