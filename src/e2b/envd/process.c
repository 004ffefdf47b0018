// SPDX-License-Identifier: Apache-2.0
/* process.Process of E2B's envd. Processes go by their pid inside the sandbox, or by a tag. */
#include "host/process/process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "e2b/core/e2b.h"
#include "e2b/core/metadata.h"
#include "e2b/core/user.h"
#include "e2b/envd/methods.h"
#include "e2b/envd/process_message.h"
#include "e2b/envd/process_stream.h"
#include "host/core/reactor.h"
#include "host/process/record.h"
#include "host/sandbox/sandbox.h"
#include "http/exchange.h"
#include "http/limits.h"

enum {
    ENDED_KEPT_MS = 30 * 1000, /* how long one that has ended is still found */
    KILL_WAIT_MS = 10 * 1000,
};

/* --- finding ---------------------------------------------------------------------------------- */

static bool is_wanted(const struct record_info *info, const struct envd_process_selector *selector)
{
    if (selector->tag)
        return info->spec->tag && strcmp(info->spec->tag, selector->tag) == 0;
    return info->pid == selector->pid;
}

static int refuse_unknown(const struct envd_process_selector *selector, struct err *err)
{
    if (selector->tag)
        return err_set(err, ERR_NOT_FOUND, "process with tag %.150s not found", selector->tag);
    return err_set(err, ERR_NOT_FOUND, "process with pid %u not found", selector->pid);
}

/* The one that runs, or else the last that has ended not long ago. */
static int record_find(const struct e2b_request *request,
                       const struct envd_process_selector *selector, bool wants_ended,
                       struct record **ret, struct err *err)
{
    struct record **records = NULL, *found = NULL;
    uint64_t now_ms = clock_wall_ms();
    size_t count = 0;
    int r = e2b_selector_check(selector, err);

    if (r < 0)
        return r;
    sandbox_list_records(request->sandbox, &records, &count);
    for (size_t i = 0; i < count; i++) {
        struct record_info info;

        record_get(records[i], &info);
        if (!is_wanted(&info, selector) || info.pid == 0 ||
            (info.is_over && (!wants_ended || info.ended_ms + ENDED_KEPT_MS < now_ms))) {
            record_unref(records[i]);
            continue;
        }
        record_unref(found);
        found = records[i];
    }
    free(records);
    *ret = found;
    return found ? 0 : refuse_unknown(selector, err);
}

/* One that runs. */
static int process_find_wanted(const struct e2b_request *request,
                               const struct envd_process_selector *selector, struct process **ret,
                               struct err *err)
{
    struct record *record = NULL;
    struct record_info info;
    int r = record_find(request, selector, false, &record, err);

    if (r < 0)
        return r;
    record_get(record, &info);
    r = sandbox_find_process(request->sandbox, info.id, ret, err);
    if (r < 0)
        r = err_set(err, ERR_NOT_FOUND, "process with pid %u not found", info.pid);
    record_unref(record);
    return r;
}

/* --- calls ------------------------------------------------------------------------------------ */

/* The time that the client gives the call is the time that its process has. */
static uint64_t time_given_ms(const struct e2b_request *request)
{
    const struct exchange *exchange = request->exchange;

    if (exchange->deadline_ns == CONNECTION_FOREVER)
        return 0;
    return (exchange->deadline_ns - exchange->started_ns) / 1000000;
}

int envd_process_start(struct e2b_request *request, const struct envd_start_request *message,
                       struct stream **ret, struct err *err)
{
    cleanup_with(e2b_start_done) struct e2b_start wish = { .words = NULL };
    const char *workdir = e2b_metadata_text(request->metadata, "workdir");
    struct e2b_surroundings around = {
        .cwd = workdir ? workdir : "~",
        .env = json_object_get(request->metadata, "envVars"),
        .sandbox_id = request->to.sandbox,
        .template_name = e2b_metadata_text(request->metadata, "templateID"),
        .timeout_ms = time_given_ms(request),
    };
    struct process *process = NULL;
    struct e2b_user user;
    int r = e2b_user_of_call(request, &user, err);

    around.user = user.name;
    if (r == 0)
        r = e2b_start_parse(message, &around, &wish, err);
    if (r == 0)
        r = sandbox_exec(request->sandbox, &wish.spec, &process, err);
    return r < 0 ? r : e2b_process_stream_own(request, process, ret, err);
}

int envd_process_connect(struct e2b_request *request, const struct envd_connect_request *message,
                         struct stream **ret, struct err *err)
{
    struct record *record = NULL;
    int r = record_find(request, message->process, true, &record, err);

    return r < 0 ? r : e2b_process_stream_join(request, record, ret, err);
}

int envd_process_list(struct e2b_request *request, const struct envd_list_request *message,
                      struct buf *out, struct err *err)
{
    struct record **records = NULL;
    struct list_encoder list;
    size_t count = 0;
    int r = list_encoder_begin(&list, &envd_list_response_schema, out);

    (void)message;
    sandbox_list_records(request->sandbox, &records, &count);
    for (size_t i = 0; i < count; i++) {
        struct record_info info;

        record_get(records[i], &info);
        if (r == 0 && !info.is_over && info.pid != 0)
            r = e2b_process_add(&list, &info);
        record_unref(records[i]);
    }
    free(records);
    if (r == 0)
        r = list_encoder_end(&list);
    return r < 0 ? err_sys(err, r, "write the reply") : 0;
}

int envd_process_update(struct e2b_request *request, const struct envd_update_request *message,
                        struct buf *out, struct err *err)
{
    cleanup_with(process_unref_slot) struct process *process = NULL;
    const struct envd_pty_size *size = message->pty ? message->pty->size : NULL;
    int r = process_find_wanted(request, message->process, &process, err);

    (void)out;
    if (r < 0 || !message->pty)
        return r;
    return process_resize(process, size ? (uint16_t)size->rows : 0, size ? (uint16_t)size->cols : 0,
                          err);
}

/* A process that does not read keeps its client waiting, but no longer than the client stays. */
static int input_send(const struct e2b_request *request, struct process *process,
                      const struct span *data, struct err *err)
{
    int r = 0;

    for (size_t at = 0; r == 0 && at < data->len; at += PROCESS_INPUT_MAX) {
        size_t left = data->len - at;

        r = process_offer_input(process, request->connection_fd, data->data + at,
                                left < PROCESS_INPUT_MAX ? left : PROCESS_INPUT_MAX, false, err);
    }
    return r;
}

int envd_process_send_input(struct e2b_request *request,
                            const struct envd_send_input_request *message, struct buf *out,
                            struct err *err)
{
    cleanup_with(process_unref_slot) struct process *process = NULL;
    struct span data = { NULL, 0 };
    struct record_info info;
    bool is_pty = false;
    int r = e2b_input_parse(message, &data, &is_pty, err);

    (void)out;
    if (r == 0)
        r = process_find_wanted(request, message->process, &process, err);
    if (r < 0)
        return r;
    record_get(process_record(process), &info);
    if (is_pty != info.spec->has_terminal)
        return err_set(err, ERR_BUSY, "tty %s assigned to process", is_pty ? "not" : "is");
    return input_send(request, process, &data, err);
}

int envd_process_close_stdin(struct e2b_request *request,
                             const struct envd_close_stdin_request *message, struct buf *out,
                             struct err *err)
{
    cleanup_with(process_unref_slot) struct process *process = NULL;
    int r = process_find_wanted(request, message->process, &process, err);

    (void)out;
    return r < 0 ? r : process_send_input(process, NULL, 0, true, err);
}

/* A killed process is gone when this returns. */
int envd_process_send_signal(struct e2b_request *request,
                             const struct envd_send_signal_request *message, struct buf *out,
                             struct err *err)
{
    cleanup_with(process_unref_slot) struct process *process = NULL;
    struct process_end end;
    int signal = 0, r = e2b_signal_parse(message, &signal, err);

    (void)out;
    if (r == 0)
        r = process_find_wanted(request, message->process, &process, err);
    if (r == 0)
        r = process_signal(process, signal, false, err);
    if (r == 0 && signal == SIGKILL)
        (void)record_wait(process_record(process), request->connection_fd, KILL_WAIT_MS, &end);
    return r;
}

/* No client can stream what it sends over HTTP/1.1. */
int envd_process_stream_input(struct e2b_request *request,
                              const struct envd_stream_input_request *message, struct buf *out,
                              struct err *err)
{
    (void)request, (void)message, (void)out;
    return err_set(err, ERR_UNSUPPORTED, "input comes by SendInput");
}
