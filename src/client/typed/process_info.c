// SPDX-License-Identifier: Apache-2.0
#include "client/typed/process_info.h"

#include <string.h>

#include "base/cleanup.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/request.h"
#include "holt.h"

void end_fill(struct holt_end *end, const struct msg_ended *message)
{
    static const enum holt_outcome outcomes[] = {
        [MSG_OUTCOME_UNKNOWN] = HOLT_OUTCOME_UNKNOWN,
        [MSG_OUTCOME_EXITED] = HOLT_EXITED,
        [MSG_OUTCOME_SIGNALED] = HOLT_SIGNALED,
        [MSG_OUTCOME_TIMED_OUT] = HOLT_TIMED_OUT,
        [MSG_OUTCOME_OOM] = HOLT_OOM,
        [MSG_OUTCOME_KILLED] = HOLT_KILLED,
        [MSG_OUTCOME_LOST] = HOLT_LOST,
        [MSG_OUTCOME_NOT_STARTED] = HOLT_NOT_STARTED,
    };
    static const char *const killers[] = {
        [MSG_KILLED_BY_NONE] = "",         [MSG_KILLED_BY_USER] = "user",
        [MSG_KILLED_BY_CLIENT] = "client", [MSG_KILLED_BY_ROLLBACK] = "rollback",
        [MSG_KILLED_BY_STOP] = "stop",     [MSG_KILLED_BY_DESTROY] = "destroy",
        [MSG_KILLED_BY_QUOTA] = "quota",
    };

    *end = (struct holt_end){
        .outcome = outcomes[message->outcome],
        .exit_code = message->exit_code,
        .signal = message->signal,
        .reason = message->reason,
        .killed_by = killers[message->killed_by],
        .duration_ms = message->duration_ms,
        .cpu_ms = message->cpu_ms,
        .memory_peak_bytes = message->memory_peak_bytes,
        .stdout_bytes = message->stdout_bytes,
        .stderr_bytes = message->stderr_bytes,
        .is_truncated = message->truncated,
    };
}

static void marks_fill(void *result, struct holt_process_info *info, int stream,
                       const struct msg_extent *extent)
{
    struct holt_output_mark *marks;

    if (!extent)
        return;
    marks = result_part(result, extent->marks_count, sizeof(*marks));
    for (size_t i = 0; i < extent->marks_count; i++)
        marks[i] =
            (struct holt_output_mark){ extent->marks[i].offset, (int64_t)extent->marks[i].time_ms };
    info->marks[stream] = marks;
    info->mark_counts[stream] = extent->marks_count;
}

static void info_fill(void *result, struct holt_process_info *info,
                      const struct msg_process_info *message)
{
    *info = (struct holt_process_info){
        .id = message->id,
        .args = message->args,
        .cwd = message->cwd,
        .tag = message->tag,
        .has_stdin = message->stdin,
        .has_terminal = message->terminal,
        .is_running = message->state == MSG_PROCESS_STATE_RUNNING,
        .pid = message->pid,
        .started_ms = (int64_t)message->started_at_ms,
        .ended_ms = (int64_t)message->ended_at_ms,
        .port = message->port,
        .address = message->address,
        .restarts = message->restarts,
        .is_args_truncated = message->args_truncated,
        .unready_reason = "",
        .stdout_total = message->stdout ? message->stdout->total : 0,
        .stderr_total = message->stderr ? message->stderr->total : 0,
    };
    marks_fill(result, info, 0, message->stdout);
    marks_fill(result, info, 1, message->stderr);
    if (message->ended) {
        struct holt_end *end = result_part(result, 1, sizeof(*end));

        end_fill(end, message->ended);
        info->end = end;
    }
}

static int one_fill(void *result, const struct msg_process_info *message, struct holt_error *error)
{
    if (!message)
        return reply_lacks("process", error);
    info_fill(result, result, message);
    return 0;
}

static int started_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_start_response *reply = message;

    if (one_fill(result, reply->process, error) < 0)
        return -1;
    ((struct holt_process_info *)result)->is_joined = reply->joined;
    return 0;
}

int holt_process_start(struct holt *holt, const char *sandbox, const struct holt_command *command,
                       int64_t deadline, struct holt_process_info **ret, struct holt_error *error)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(REQUEST_BYTES_MAX);
    struct holt_command given = HOLT_INIT(holt_command);
    struct request_process process;
    struct msg_start_request request;
    struct client_call call = { &method_process_service_start, &request, false, deadline };

    if (options_take(&given, sizeof(given), command, error) < 0 ||
        request_process_set(&process, &given, given.has_stdin, &arena, error) < 0)
        return -1;
    request = (struct msg_start_request){
        .sandbox_id = sandbox,
        .process = &process.spec,
        .idempotency_key = given.idempotency_key,
    };
    call.can_be_repeated = given.idempotency_key != NULL;
    return client_call_for(holt, &call, sizeof(**ret), started_fill, ret, error);
}

static int resumed_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_resume_sandbox_response *reply = message;

    return one_fill(result, reply->process, error);
}

int holt_sandbox_resume_with(struct holt *holt, const char *sandbox,
                             const struct holt_command *command, int64_t deadline,
                             struct holt_process_info **ret, struct holt_error *error)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(REQUEST_BYTES_MAX);
    struct holt_command given = HOLT_INIT(holt_command);
    struct request_process process;
    struct msg_resume_sandbox_request request;
    const struct client_call call = { &method_sandbox_service_resume, &request, false, deadline };

    if (options_take(&given, sizeof(given), command, error) < 0 ||
        request_process_set(&process, &given, given.has_stdin, &arena, error) < 0)
        return -1;
    request =
        (struct msg_resume_sandbox_request){ .sandbox_id = sandbox, .process = &process.spec };
    return client_call_for(holt, &call, sizeof(**ret), resumed_fill, ret, error);
}

static int launched_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_launch_response *reply = message;
    struct holt_process_info *info = result;

    if (one_fill(result, reply->process, error) < 0)
        return -1;
    info->is_joined = reply->joined;
    info->is_ready = reply->readiness == MSG_READINESS_READY;
    info->unready_reason = reply->reason;
    info->has_ended_unready = reply->readiness == MSG_READINESS_ENDED_EARLY;
    return 0;
}

static enum msg_restart restart_of(enum holt_restart restart)
{
    switch (restart) {
    case HOLT_RESTART_NO:
        break;
    case HOLT_RESTART_ON_FAILURE:
        return MSG_RESTART_ON_FAILURE;
    case HOLT_RESTART_ALWAYS:
        return MSG_RESTART_ALWAYS;
    }
    return MSG_RESTART_NO;
}

int holt_process_launch(struct holt *holt, const char *sandbox, const struct holt_service *service,
                        int64_t deadline, struct holt_process_info **ret, struct holt_error *error)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(REQUEST_BYTES_MAX);
    struct holt_service given = HOLT_INIT(holt_service);
    struct holt_command command = HOLT_INIT(holt_command);
    struct request_process process;
    struct msg_launch_request request;
    struct client_call call = { &method_process_service_launch, &request, false, deadline };
    struct msg_ready ready;

    if (options_take(&given, sizeof(given), service, error) < 0 ||
        options_take(&command, sizeof(command), given.command, error) < 0 ||
        request_process_set(&process, &command, command.has_stdin, &arena, error) < 0)
        return -1;
    ready =
        (struct msg_ready){ .http_path = given.ready_path, .timeout_ms = given.ready_timeout_ms };
    request = (struct msg_launch_request){
        .sandbox_id = sandbox,
        .process = &process.spec,
        .idempotency_key = command.idempotency_key,
        .port = given.port,
        .restart = restart_of(given.restart),
        .ready = given.waits ? &ready : NULL,
        .host_port = given.host_port,
    };
    call.can_be_repeated = command.idempotency_key != NULL;
    return client_call_for(holt, &call, sizeof(**ret), launched_fill, ret, error);
}

static int got_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_get_process_response *reply = message;

    return one_fill(result, reply->process, error);
}

int holt_process_get(struct holt *holt, const char *sandbox, const char *process_id,
                     int64_t deadline, struct holt_process_info **ret, struct holt_error *error)
{
    const struct msg_get_process_request request = { .sandbox_id = sandbox,
                                                     .process_id = process_id };
    const struct client_call call = { &method_process_service_get, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), got_fill, ret, error);
}

static int list_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_list_processes_response *reply = message;
    struct holt_process_list *list = result;

    (void)error;
    list->count = reply->processes_count;
    list->items = RESULT_LIST(result, struct holt_process_info, info_fill, reply->processes,
                              reply->processes_count);
    return 0;
}

int holt_process_list(struct holt *holt, const char *sandbox, const char *tag, int64_t deadline,
                      struct holt_process_list **ret, struct holt_error *error)
{
    const struct msg_list_processes_request request = { .sandbox_id = sandbox, .tag = tag };
    const struct client_call call = { &method_process_service_list, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), list_fill, ret, error);
}

/* The parameters are those of the public API. */
// NOLINTNEXTLINE(readability-function-size)
int holt_process_wait_for(struct holt *holt, const char *sandbox, const char *process_id,
                          uint64_t timeout_ms, int64_t deadline, struct holt_end **ret,
                          struct holt_error *error)
{
    const struct msg_wait_request request = {
        .sandbox_id = sandbox,
        .process_id = process_id,
        .timeout_ms = timeout_ms,
    };
    const struct client_call call = { &method_process_service_wait, &request, true, deadline };
    cleanup_result struct holt_end *end = NULL;
    const struct msg_wait_response *reply;
    json_t *json;

    if (client_call(holt, &call, &json, error) < 0)
        return -1;
    end = result_new(sizeof(*end), json);
    reply = result_decode(end, call.method->reply, json, error);
    if (!reply)
        return -1;
    if (!reply->ended && !reply->timed_out)
        return reply_lacks("ended", error);
    if (reply->ended)
        end_fill(end, reply->ended);
    *ret = reply->ended ? TAKE_PTR(end) : NULL;
    return 0;
}

/* Without a timeout, the daemon replies only when the process has ended. */
int holt_process_wait(struct holt *holt, const char *sandbox, const char *process_id,
                      int64_t deadline, struct holt_end **ret, struct holt_error *error)
{
    if (holt_process_wait_for(holt, sandbox, process_id, 0, deadline, ret, error) < 0)
        return -1;
    return *ret ? 0 : reply_lacks("ended", error);
}

static int signal_send(struct holt *holt, const struct msg_signal_request *request,
                       int64_t deadline, struct holt_error *error)
{
    const struct client_call call = { &method_process_service_signal, request, false, deadline };

    return client_call_void(holt, &call, error);
}

int holt_process_signal(struct holt *holt, const char *sandbox, const char *process_id, int signal,
                        int64_t deadline, struct holt_error *error)
{
    const struct msg_signal_request request = {
        .sandbox_id = sandbox,
        .process_id = process_id,
        .signal = signal,
    };

    return signal_send(holt, &request, deadline, error);
}

int holt_process_signal_tree(struct holt *holt, const char *sandbox, const char *process_id,
                             int signal, int64_t deadline, struct holt_error *error)
{
    const struct msg_signal_request request = {
        .sandbox_id = sandbox,
        .process_id = process_id,
        .signal = signal,
        .tree = true,
    };

    return signal_send(holt, &request, deadline, error);
}
