// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/gather.h"
#include "client/message/messages.h"
#include "client/message/request.h"
#include "holt.h"

static void shell_fill(void *result, struct holt_shell *shell, const struct msg_shell *message)
{
    (void)result;
    shell->name = message->name;
    shell->kind = message->kind;
    shell->process_id = message->process_id;
    shell->is_busy = message->busy;
    shell->waiting = message->waiting;
    shell->user = message->user;
    shell->tier = message->tier;
}

static int opened_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_shell_open_response *reply = message;

    if (!reply->shell)
        return reply_lacks("shell", error);
    shell_fill(result, result, reply->shell);
    return 0;
}

int holt_shell_open(struct holt *holt, const char *sandbox, const char *shell, int64_t deadline,
                    struct holt_shell **ret, struct holt_error *error)
{
    struct holt_shell_command command = HOLT_INIT(holt_shell_command);

    command.shell = shell;
    return holt_shell_open_with(holt, sandbox, &command, deadline, ret, error);
}

int holt_shell_open_with(struct holt *holt, const char *sandbox,
                         const struct holt_shell_command *command, int64_t deadline,
                         struct holt_shell **ret, struct holt_error *error)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(REQUEST_BYTES_MAX);
    struct holt_shell_command given = HOLT_INIT(holt_shell_command);
    struct msg_shell_open_request request;
    const struct client_call call = { &method_shell_service_open, &request, false, deadline };

    if (options_take(&given, sizeof(given), command, error) < 0)
        return -1;
    request = (struct msg_shell_open_request){
        .sandbox_id = sandbox,
        .name = given.shell,
        .user = given.user,
        .tier = given.tier,
        .cwd = given.cwd,
    };
    if (request_pairs(&arena, given.env, &request.env, &request.env_count, error) < 0)
        return -1;
    return client_call_for(holt, &call, sizeof(**ret), opened_fill, ret, error);
}

static int got_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_shell_get_response *reply = message;

    if (!reply->shell)
        return reply_lacks("shell", error);
    shell_fill(result, result, reply->shell);
    return 0;
}

int holt_shell_get(struct holt *holt, const char *sandbox, const char *shell, int64_t deadline,
                   struct holt_shell **ret, struct holt_error *error)
{
    const struct msg_shell_get_request request = { .sandbox_id = sandbox, .name = shell };
    const struct client_call call = { &method_shell_service_get, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), got_fill, ret, error);
}

static int list_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_shell_list_response *reply = message;
    struct holt_shell_list *list = result;

    (void)error;
    list->count = reply->shells_count;
    list->items =
        RESULT_LIST(result, struct holt_shell, shell_fill, reply->shells, reply->shells_count);
    return 0;
}

int holt_shell_list(struct holt *holt, const char *sandbox, int64_t deadline,
                    struct holt_shell_list **ret, struct holt_error *error)
{
    const struct msg_shell_list_request request = { .sandbox_id = sandbox };
    const struct client_call call = { &method_shell_service_list, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), list_fill, ret, error);
}

int holt_shell_remove(struct holt *holt, const char *sandbox, const char *shell, int64_t deadline,
                      struct holt_error *error)
{
    const struct msg_shell_remove_request request = { .sandbox_id = sandbox, .name = shell };
    const struct client_call call = { &method_shell_service_remove, &request, false, deadline };

    return client_call_void(holt, &call, error);
}

struct shell_run {
    struct gather gather;
    char *sandbox_id, *process_id;
    bool is_shell_ended;
};

static void shell_run_done(struct shell_run *run)
{
    gather_done(&run->gather);
    free(run->sandbox_id);
    free(run->process_id);
}

static void end_take(struct shell_run *run, const struct msg_shell_ended *ended)
{
    const struct holt_end end = {
        .outcome = ended->timed_out ? HOLT_TIMED_OUT : HOLT_EXITED,
        .exit_code = ended->exit_code,
        .reason = ended->reason,
        .killed_by = "",
        .duration_ms = ended->duration_ms,
    };

    run->is_shell_ended = ended->shell_ended;
    gather_end(&run->gather, &end);
}

static int output_take(struct shell_run *run, enum holt_piece_kind kind, const struct span *bytes,
                       struct holt_error *error)
{
    return bytes->len > 0 ? gather_take(&run->gather, kind, bytes->data, bytes->len, error) : 0;
}

static int event_take(void *context, void **result, const void *message, struct holt_error *error)
{
    const struct msg_shell_run_response *event = message;
    struct shell_run *run = context;

    (void)result;
    if (event->started && !run->process_id) {
        run->sandbox_id = xstrdup(event->started->sandbox_id);
        run->process_id = xstrdup(event->started->process_id);
    }
    if (event->ended)
        end_take(run, event->ended);
    if (output_take(run, HOLT_STDOUT, &event->stdout, error) < 0)
        return -1;
    return output_take(run, HOLT_STDERR, &event->stderr, error);
}

int holt_shell_run(struct holt *holt, const char *sandbox, const struct holt_shell_command *command,
                   int64_t deadline, struct holt_result **ret, struct holt_error *error)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(REQUEST_BYTES_MAX);
    struct holt_shell_command given = HOLT_INIT(holt_shell_command);
    cleanup_with(shell_run_done) struct shell_run run = { .is_shell_ended = false };
    struct msg_shell_run_request request;
    const struct messages_call call = {
        .method = &method_shell_service_run,
        .request = &request,
        .deadline = deadline,
        .each = event_take,
        .context = &run,
    };

    if (options_take(&given, sizeof(given), command, error) < 0)
        return -1;
    gather_init(&run.gather, given.on_output, given.context, given.output_max);
    request = (struct msg_shell_run_request){
        .sandbox_id = sandbox,
        .name = given.shell,
        .command = given.text,
        .timeout_ms = given.timeout_ms,
        .user = given.user,
        .tier = given.tier,
        .cwd = given.cwd,
    };
    if (request_pairs(&arena, given.env, &request.env, &request.env_count, error) < 0)
        return -1;
    if (messages_follow(holt, &call, error) < 0 ||
        gather_result(&run.gather, run.sandbox_id ? run.sandbox_id : "",
                      run.process_id ? run.process_id : "", ret, error) < 0)
        return -1;
    (*ret)->is_shell_ended = run.is_shell_ended;
    return 0;
}
