// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/transport/messages.h"
#include "client/typed/gather.h"
#include "client/typed/request.h"
#include "holt.h"

static void shell_read(struct reading *reading, const json_t *object, void *into)
{
    struct holt_shell *shell = into;

    shell->name = read_text(reading, object, "name");
    shell->kind = read_text(reading, object, "kind");
    shell->process_id = read_text(reading, object, "processId");
    shell->is_busy = read_bool(reading, object, "busy");
    shell->waiting = read_u32(reading, object, "waiting");
}

static json_t *request_shell(const char *sandbox, const char *shell)
{
    return request_value(request_for(sandbox), "name", shell ? json_string(shell) : NULL);
}

int holt_shell_open(struct holt *holt, const char *sandbox, const char *shell, int64_t deadline,
                    struct holt_shell **ret, struct holt_error *error)
{
    const struct client_answer answer = { "shell", sizeof(**ret), shell_read };
    const struct client_call call = { "ShellService/Open", request_shell(sandbox, shell), false,
                                      deadline };

    return client_call_for(holt, &call, &answer, ret, error);
}

static void list_read(struct reading *reading, const json_t *object, void *into)
{
    const json_t *shells = read_array(reading, object, "shells");
    struct holt_shell_list *list = into;

    list->count = json_array_size(shells);
    list->items = (const struct holt_shell *const *)read_list(reading, shells,
                                                              sizeof(**list->items), shell_read);
}

int holt_shell_list(struct holt *holt, const char *sandbox, int64_t deadline,
                    struct holt_shell_list **ret, struct holt_error *error)
{
    const struct client_answer answer = { NULL, sizeof(**ret), list_read };
    const struct client_call call = { "ShellService/List", request_for(sandbox), true, deadline };

    return client_call_for(holt, &call, &answer, ret, error);
}

int holt_shell_remove(struct holt *holt, const char *sandbox, const char *shell, int64_t deadline,
                      struct holt_error *error)
{
    const struct client_call call = { "ShellService/Remove", request_shell(sandbox, shell), false,
                                      deadline };

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

static void take_end(struct shell_run *run, struct reading *reading, const json_t *ended)
{
    const struct holt_end end = {
        .outcome = read_bool(reading, ended, "timedOut") ? HOLT_TIMED_OUT : HOLT_EXITED,
        .exit_code = (int)read_u32(reading, ended, "exitCode"),
        .reason = read_text(reading, ended, "reason"),
        .killed_by = "",
        .duration_ms = read_u64(reading, ended, "durationMs"),
    };

    run->is_shell_ended = read_bool(reading, ended, "shellEnded");
    gather_end(&run->gather, &end);
}

static int take_output(struct shell_run *run, struct reading *reading, const json_t *message,
                       struct holt_error *error)
{
    static const struct {
        const char *name;
        enum holt_piece_kind kind;
    } streams[] = { { "stdout", HOLT_STDOUT }, { "stderr", HOLT_STDERR } };

    for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
        size_t len;
        const char *data = read_bytes(reading, message, streams[i].name, &len);

        if (len > 0 && gather_take(&run->gather, streams[i].kind, data, len, error) < 0)
            return -1;
    }
    return 0;
}

static int take_message(void *context, struct reading *reading, const json_t *message,
                        struct holt_error *error)
{
    const json_t *started = read_object(reading, message, "started");
    const json_t *ended = read_object(reading, message, "ended");
    struct shell_run *run = context;

    if (started && !run->process_id) {
        run->sandbox_id = xstrdup(read_text(reading, started, "sandboxId"));
        run->process_id = xstrdup(read_text(reading, started, "processId"));
    }
    if (ended)
        take_end(run, reading, ended);
    return take_output(run, reading, message, error);
}

int holt_shell_run(struct holt *holt, const char *sandbox, const struct holt_shell_command *command,
                   int64_t deadline, struct holt_result **ret, struct holt_error *error)
{
    struct holt_shell_command given = HOLT_INIT(holt_shell_command);
    cleanup_with(shell_run_done) struct shell_run run = { .is_shell_ended = false };
    struct messages_call call = {
        .method = "holt.v1.ShellService/Run",
        .deadline = deadline,
        .each = take_message,
        .context = &run,
    };

    if (options_take(&given, sizeof(given), command, error) < 0)
        return -1;
    gather_init(&run.gather, given.on_output, given.context, given.output_max);
    call.request = request_value(request_shell(sandbox, given.shell), "command",
                                 given.text ? json_string(given.text) : NULL);
    call.request = request_u64(call.request, "timeoutMs", given.timeout_ms);
    if (messages_follow(holt, &call, error) < 0 ||
        gather_result(&run.gather, run.sandbox_id ? run.sandbox_id : "",
                      run.process_id ? run.process_id : "", ret, error) < 0)
        return -1;
    (*ret)->is_shell_ended = run.is_shell_ended;
    return 0;
}
