// SPDX-License-Identifier: Apache-2.0
#include "client/typed/process_info.h"

#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/transport/deadline.h"
#include "client/typed/request.h"
#include "holt.h"

static enum holt_outcome outcome_of(const char *name)
{
    static const char *const names[] = {
        [HOLT_EXITED] = "OUTCOME_EXITED",           [HOLT_SIGNALED] = "OUTCOME_SIGNALED",
        [HOLT_TIMED_OUT] = "OUTCOME_TIMED_OUT",     [HOLT_OOM] = "OUTCOME_OOM",
        [HOLT_KILLED] = "OUTCOME_KILLED",           [HOLT_LOST] = "OUTCOME_LOST",
        [HOLT_NOT_STARTED] = "OUTCOME_NOT_STARTED",
    };

    for (size_t i = HOLT_EXITED; i < ARRAY_SIZE(names); i++)
        if (strcmp(names[i], name) == 0)
            return (enum holt_outcome)i;
    return HOLT_OUTCOME_UNKNOWN;
}

/* "KILLED_BY_USER" is "USER". */
static const char *killer(const char *name)
{
    static const char prefix[] = "KILLED_BY_";

    if (strncmp(name, prefix, strlen(prefix)) != 0 || strcmp(name, "KILLED_BY_UNSPECIFIED") == 0)
        return "";
    return name + strlen(prefix);
}

void end_read(struct reading *reading, const json_t *object, void *into)
{
    struct holt_end *end = into;

    end->outcome = outcome_of(read_text(reading, object, "outcome"));
    end->exit_code = (int)read_u32(reading, object, "exitCode");
    end->signal = (int)read_u32(reading, object, "signal");
    end->reason = read_text(reading, object, "reason");
    end->killed_by = killer(read_text(reading, object, "killedBy"));
    end->duration_ms = read_u64(reading, object, "durationMs");
    end->cpu_ms = read_u64(reading, object, "cpuMs");
    end->memory_peak_bytes = read_u64(reading, object, "memoryPeakBytes");
    end->stdout_bytes = read_u64(reading, object, "stdoutBytes");
    end->stderr_bytes = read_u64(reading, object, "stderrBytes");
    end->is_truncated = read_bool(reading, object, "truncated");
}

void process_info_read(struct reading *reading, const json_t *object, void *into)
{
    const json_t *ended = read_object(reading, object, "ended");
    struct holt_process_info *info = into;

    info->id = read_text(reading, object, "id");
    info->args = read_texts(reading, object, "args");
    info->cwd = read_text(reading, object, "cwd");
    info->tag = read_text(reading, object, "tag");
    info->has_stdin = read_bool(reading, object, "stdin");
    info->has_terminal = read_bool(reading, object, "terminal");
    info->is_running = strcmp(read_text(reading, object, "state"), "PROCESS_STATE_RUNNING") == 0;
    info->pid = read_u32(reading, object, "pid");
    info->started_ms = read_time(reading, object, "startedAt");
    info->ended_ms = read_time(reading, object, "endedAt");
    if (ended) {
        struct holt_end *end = result_part(reading->result, 1, sizeof(*end));

        end_read(reading, ended, end);
        info->end = end;
    }
    info->port = read_u32(reading, object, "port");
    info->address = read_text(reading, object, "address");
    info->restarts = read_u32(reading, object, "restarts");
    info->is_args_truncated = read_bool(reading, object, "argsTruncated");
}

/* The answer to a start or a launch, whose process is one field of it. */
static void started_read(struct reading *reading, const json_t *object, void *into)
{
    const char *readiness = read_text(reading, object, "readiness");
    struct holt_process_info *info = into;

    process_info_read(reading, read_object(reading, object, "process"), info);
    info->is_joined = read_bool(reading, object, "joined");
    info->is_ready = strcmp(readiness, "READINESS_READY") == 0;
    info->has_ended_unready = strcmp(readiness, "READINESS_ENDED") == 0;
}

int holt_process_start(struct holt *holt, const char *sandbox, const struct holt_command *command,
                       int64_t deadline, struct holt_process_info **ret, struct holt_error *error)
{
    const struct client_answer answer = { NULL, sizeof(**ret), started_read };
    struct holt_command given = HOLT_INIT(holt_command);
    struct client_call call = { .method = "ProcessService/Start", .deadline = deadline };

    if (options_take(&given, sizeof(given), command, error) < 0)
        return -1;
    call.request =
        request_value(request_for(sandbox), "process", request_process(&given, given.has_stdin));
    call.request = request_text(call.request, "idempotencyKey", given.idempotency_key);
    call.can_be_repeated = given.idempotency_key != NULL;
    return client_call_for(holt, &call, &answer, ret, error);
}

static json_t *launch_request(const char *sandbox, const struct holt_service *service,
                              const struct holt_command *command)
{
    static const char *const restarts[] = { NULL, "RESTART_ON_FAILURE", "RESTART_ALWAYS" };
    json_t *request = request_value(request_for(sandbox), "process",
                                    request_process(command, command->has_stdin));
    json_t *ready;

    request = request_text(request, "idempotencyKey", command->idempotency_key);
    if (service->port)
        request = request_value(request, "port", json_integer(service->port));
    if ((size_t)service->restart < ARRAY_SIZE(restarts))
        request = request_text(request, "restart", restarts[service->restart]);
    if (!service->waits)
        return request;
    ready = request_text(json_object(), "httpPath", service->ready_path);
    return request_value(request, "ready",
                         request_u64(ready, "timeoutMs", service->ready_timeout_ms));
}

int holt_process_launch(struct holt *holt, const char *sandbox, const struct holt_service *service,
                        int64_t deadline, struct holt_process_info **ret, struct holt_error *error)
{
    const struct client_answer answer = { NULL, sizeof(**ret), started_read };
    struct holt_service given = HOLT_INIT(holt_service);
    struct holt_command command = HOLT_INIT(holt_command);
    struct client_call call = { .method = "ProcessService/Launch", .deadline = deadline };

    if (options_take(&given, sizeof(given), service, error) < 0 ||
        options_take(&command, sizeof(command), given.command, error) < 0)
        return -1;
    call.request = launch_request(sandbox, &given, &command);
    call.can_be_repeated = command.idempotency_key != NULL;
    return client_call_for(holt, &call, &answer, ret, error);
}

static json_t *request_of(const char *sandbox, const char *process_id)
{
    return request_value(request_for(sandbox), "processId",
                         process_id ? json_string(process_id) : NULL);
}

int holt_process_get(struct holt *holt, const char *sandbox, const char *process_id,
                     int64_t deadline, struct holt_process_info **ret, struct holt_error *error)
{
    const struct client_answer answer = { "process", sizeof(**ret), process_info_read };
    const struct client_call call = { "ProcessService/Get", request_of(sandbox, process_id), true,
                                      deadline };

    return client_call_for(holt, &call, &answer, ret, error);
}

static void list_read(struct reading *reading, const json_t *object, void *into)
{
    const json_t *processes = read_array(reading, object, "processes");
    struct holt_process_list *list = into;

    list->count = json_array_size(processes);
    list->items = (const struct holt_process_info *const *)read_list(
        reading, processes, sizeof(**list->items), process_info_read);
}

int holt_process_list(struct holt *holt, const char *sandbox, const char *tag, int64_t deadline,
                      struct holt_process_list **ret, struct holt_error *error)
{
    const struct client_answer answer = { NULL, sizeof(**ret), list_read };
    const struct client_call call = { "ProcessService/List",
                                      request_text(request_for(sandbox), "tag", tag), true,
                                      deadline };

    return client_call_for(holt, &call, &answer, ret, error);
}

static void wait_read(struct reading *reading, const json_t *object, void *into)
{
    const json_t *ended = read_object(reading, object, "ended");

    if (ended)
        end_read(reading, ended, into);
}

/* A wait is a read: it may be begun again. */
int holt_process_wait(struct holt *holt, const char *sandbox, const char *process_id,
                      int64_t deadline, struct holt_end **ret, struct holt_error *error)
{
    const struct client_answer answer = { NULL, sizeof(**ret), wait_read };
    const struct client_call call = { "ProcessService/Wait", request_of(sandbox, process_id), true,
                                      deadline };

    return client_call_for(holt, &call, &answer, ret, error);
}

/* The parameters are those of the public API. */
// NOLINTNEXTLINE(readability-function-size)
int holt_process_wait_for(struct holt *holt, const char *sandbox, const char *process_id,
                          uint64_t timeout_ms, int64_t deadline, struct holt_end **ret,
                          struct holt_error *error)
{
    const struct client_call call = {
        "ProcessService/Wait",
        request_u64(request_of(sandbox, process_id), "timeoutMs", timeout_ms), true, deadline
    };
    struct reading reading = { .is_wrong = false };
    cleanup_result struct holt_end *end = NULL;
    const json_t *ended;
    json_t *reply;

    if (client_call(holt, &call, &reply, error) < 0)
        return -1;
    reading.result = end = result_new(sizeof(*end), reply);
    ended = read_object(&reading, reply, "ended");
    if (ended)
        end_read(&reading, ended, end);
    else if (!read_bool(&reading, reply, "timedOut"))
        return error_set(error, "internal", "the daemon's answer has no 'ended'");
    if (reading_end(&reading, error) < 0)
        return -1;
    *ret = ended ? TAKE_PTR(end) : NULL;
    return 0;
}

static int send_signal(struct holt *holt, json_t *request, int signal, int64_t deadline,
                       struct holt_error *error)
{
    const struct client_call call = { "ProcessService/Signal",
                                      request_value(request, "signal", json_integer(signal)), false,
                                      deadline };

    return client_call_void(holt, &call, error);
}

int holt_process_signal(struct holt *holt, const char *sandbox, const char *process_id, int signal,
                        int64_t deadline, struct holt_error *error)
{
    return send_signal(holt, request_of(sandbox, process_id), signal, deadline, error);
}

int holt_process_signal_tree(struct holt *holt, const char *sandbox, const char *process_id,
                             int signal, int64_t deadline, struct holt_error *error)
{
    return send_signal(holt, request_true(request_of(sandbox, process_id), "tree", true), signal,
                       deadline, error);
}
