// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/cleanup.h"
#include "base/thread.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/gather.h"
#include "client/typed/process.h"
#include "holt.h"

/* A thread sends the input, so that a process that writes before it has read everything does not
 * block, with the caller waiting for its output. */
struct feeder {
    struct holt_process *process;
    const void *data;
    size_t len;
    int64_t deadline;
    struct thread thread;
};

/* An error means that the process has ended or closed its stdin; its events have the reason. */
static void feeder_main(void *argument)
{
    struct feeder *feeder = argument;
    struct holt_error ignored;

    (void)holt_process_send(feeder->process, feeder->data, feeder->len, true, feeder->deadline,
                            &ignored);
}

static int feeder_start(struct feeder *feeder, struct holt_error *error)
{
    int r;

    if (!feeder->data || feeder->thread.is_started)
        return 0;
    r = thread_start(&feeder->thread, "holt-feeder", feeder_main, feeder);
    if (r < 0)
        return error_set(error, "resource_exhausted", "start a thread for input: %s", strerror(-r));
    return 0;
}

/* Collects the events of the process until its end. */
static int process_follow(struct holt_process *process, struct gather *gather,
                          struct feeder *feeder, struct holt_error *error)
{
    const struct holt_process_event *event;
    int r;

    while ((r = holt_process_next(process, &event, error)) > 0) {
        if (event->kind == HOLT_PROCESS_STARTED)
            r = feeder_start(feeder, error);
        else if (event->kind == HOLT_PROCESS_STDOUT || event->kind == HOLT_PROCESS_STDERR)
            r = gather_take(gather, event->kind == HOLT_PROCESS_STDOUT ? HOLT_STDOUT : HOLT_STDERR,
                            event->data, event->len, error);
        else if (event->kind == HOLT_PROCESS_ENDED)
            gather_end(gather, event->end);
        else
            gather->is_cut = true;
        if (r < 0)
            return -1;
    }
    return r;
}

/* Takes the process. */
static int process_finish(struct holt_process *process, const struct holt_command *command,
                          int64_t deadline, struct holt_result **ret, struct holt_error *error)
{
    cleanup_with(gather_done) struct gather gather;
    struct feeder feeder = {
        .process = process,
        .data = command->input,
        .len = command->input_len,
        .deadline = deadline,
    };
    int r;

    gather_init(&gather, command->on_output, command->context, command->output_max);
    r = process_follow(process, &gather, &feeder, error);
    if (r == 0)
        r = gather_result(&gather, holt_process_sandbox_id(process), holt_process_id(process), ret,
                          error);
    if (r == 0)
        (*ret)->is_joined = holt_process_is_joined(process);
    /* The stream is closed first: that ends a feeder that waits for the process. */
    process_hang_up(process);
    thread_join(&feeder.thread);
    holt_process_close(process);
    return r;
}

int holt_exec(struct holt *holt, const char *sandbox, const struct holt_command *command,
              int64_t deadline, struct holt_result **ret, struct holt_error *error)
{
    struct holt_command given = HOLT_INIT(holt_command);
    struct holt_process *process;

    if (options_take(&given, sizeof(given), command, error) < 0)
        return -1;
    given.has_stdin = given.input != NULL;
    if (holt_process_open(holt, sandbox, &given, deadline, &process, error) < 0)
        return -1;
    return process_finish(process, &given, deadline, ret, error);
}

int holt_run(struct holt *holt, const struct holt_sandbox_options *options,
             const struct holt_command *command, int64_t deadline, struct holt_result **ret,
             struct holt_error *error)
{
    struct holt_command given = HOLT_INIT(holt_command);
    struct holt_process *process;

    if (options_take(&given, sizeof(given), command, error) < 0)
        return -1;
    given.has_stdin = given.input != NULL;
    if (holt_process_run(holt, options, &given, deadline, &process, error) < 0)
        return -1;
    return process_finish(process, &given, deadline, ret, error);
}
