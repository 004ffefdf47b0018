// SPDX-License-Identifier: Apache-2.0
/* process.Process of E2B's envd. Processes go by their pid inside the sandbox, or by a tag. */
#include "host/process/process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "e2b/core/e2b.h"
#include "e2b/core/metadata.h"
#include "e2b/core/user.h"
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
    INPUT_MAX = 4 * 1024 * 1024,
};

/* --- finding ---------------------------------------------------------------------------------- */

static bool is_wanted(const struct record_info *info, const struct e2b_selector *selector)
{
    if (selector->tag)
        return info->spec->tag && strcmp(info->spec->tag, selector->tag) == 0;
    return info->pid == selector->pid;
}

static int refuse_unknown(const struct e2b_selector *selector, struct err *err)
{
    if (selector->tag)
        return err_set(err, ERR_NOT_FOUND, "process with tag %.150s not found", selector->tag);
    return err_set(err, ERR_NOT_FOUND, "process with pid %u not found", selector->pid);
}

/* The one that runs, or else the last that has ended not long ago. */
static int record_find(const struct e2b_request *request, bool wants_ended, struct record **ret,
                       struct err *err)
{
    struct e2b_selector selector;
    struct record **records = NULL, *found = NULL;
    uint64_t now_ms = clock_wall_ms();
    size_t count = 0;
    int r = e2b_selector_parse(request->body, &selector, err);

    if (r < 0)
        return r;
    sandbox_list_records(request->sandbox, &records, &count);
    for (size_t i = 0; i < count; i++) {
        struct record_info info;

        record_get(records[i], &info);
        if (!is_wanted(&info, &selector) || info.pid == 0 ||
            (info.is_over && (!wants_ended || info.ended_ms + ENDED_KEPT_MS < now_ms))) {
            record_unref(records[i]);
            continue;
        }
        record_unref(found);
        found = records[i];
    }
    free(records);
    *ret = found;
    return found ? 0 : refuse_unknown(&selector, err);
}

/* One that runs. */
static int process_find_wanted(const struct e2b_request *request, struct process **ret,
                               struct err *err)
{
    struct record *record = NULL;
    struct record_info info;
    int r = record_find(request, false, &record, err);

    if (r < 0)
        return r;
    record_get(record, &info);
    r = sandbox_find_process(request->sandbox, info.id, ret, err);
    if (r < 0)
        r = err_set(err, ERR_NOT_FOUND, "process with pid %u not found", info.pid);
    record_unref(record);
    return r;
}

static void process_unref_slot(struct process **process)
{
    process_unref(*process);
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

static int start(struct e2b_request *request, struct stream **ret, struct err *err)
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
        r = e2b_start_parse(request->body, &around, &wish, err);
    if (r == 0)
        r = sandbox_exec(request->sandbox, &wish.spec, &process, err);
    return r < 0 ? r : e2b_process_stream_own(request, process, ret, err);
}

static int join(struct e2b_request *request, struct stream **ret, struct err *err)
{
    struct record *record = NULL;
    int r = record_find(request, true, &record, err);

    return r < 0 ? r : e2b_process_stream_join(request, record, ret, err);
}

static int list(struct e2b_request *request, json_t **ret_reply, struct err *err)
{
    json_t *processes = json_array();
    struct record **records = NULL;
    size_t count = 0;

    (void)err;
    sandbox_list_records(request->sandbox, &records, &count);
    for (size_t i = 0; i < count; i++) {
        struct record_info info;

        record_get(records[i], &info);
        if (!info.is_over && info.pid != 0)
            (void)json_array_append_new(processes, e2b_process_json(&info));
        record_unref(records[i]);
    }
    free(records);
    *ret_reply = json_pack("{s:o}", "processes", processes);
    return 0;
}

static int update(struct e2b_request *request, json_t **ret_reply, struct err *err)
{
    cleanup_with(process_unref_slot) struct process *process = NULL;
    uint16_t rows = 0, columns = 0;
    bool has_pty = false;
    int r = e2b_pty_parse(request->body, &has_pty, &rows, &columns, err);

    (void)ret_reply;
    if (r == 0)
        r = process_find_wanted(request, &process, err);
    return r < 0 || !has_pty ? r : process_resize(process, rows, columns, err);
}

/* A process that does not read keeps its client waiting, but no longer than the client stays. */
static int input_send(const struct e2b_request *request, struct process *process,
                      const struct buf *data, struct err *err)
{
    int r = 0;

    for (size_t at = 0; r == 0 && at < data->len; at += PROCESS_INPUT_MAX) {
        size_t left = data->len - at;

        r = process_offer_input(process, request->connection_fd, data->data + at,
                                left < PROCESS_INPUT_MAX ? left : PROCESS_INPUT_MAX, false, err);
    }
    return r;
}

static int send_input(struct e2b_request *request, json_t **ret_reply, struct err *err)
{
    cleanup_with(process_unref_slot) struct process *process = NULL;
    cleanup_with(buf_done) struct buf data = BUF_INIT(INPUT_MAX);
    struct record_info info;
    bool is_pty = false;
    int r = e2b_input_parse(request->body, &data, &is_pty, err);

    (void)ret_reply;
    if (r == 0)
        r = process_find_wanted(request, &process, err);
    if (r < 0)
        return r;
    record_get(process_record(process), &info);
    if (is_pty != info.spec->has_terminal)
        return err_set(err, ERR_BUSY, "tty %s assigned to process", is_pty ? "not" : "is");
    return input_send(request, process, &data, err);
}

static int close_stdin(struct e2b_request *request, json_t **ret_reply, struct err *err)
{
    cleanup_with(process_unref_slot) struct process *process = NULL;
    int r = process_find_wanted(request, &process, err);

    (void)ret_reply;
    return r < 0 ? r : process_send_input(process, NULL, 0, true, err);
}

/* A killed process is gone when this returns. */
static int send_signal(struct e2b_request *request, json_t **ret_reply, struct err *err)
{
    cleanup_with(process_unref_slot) struct process *process = NULL;
    struct process_end end;
    int signal = 0, r = e2b_signal_parse(request->body, &signal, err);

    (void)ret_reply;
    if (r == 0)
        r = process_find_wanted(request, &process, err);
    if (r == 0)
        r = process_signal(process, signal, false, err);
    if (r == 0 && signal == SIGKILL)
        (void)record_wait(process_record(process), request->connection_fd, KILL_WAIT_MS, &end);
    return r;
}

/* No client can stream what it sends over HTTP/1.1. */
static int stream_input(struct e2b_request *request, json_t **ret_reply, struct err *err)
{
    (void)request, (void)ret_reply;
    return err_set(err, ERR_UNSUPPORTED, "input comes by SendInput");
}

#define PROCESS "/process.Process/"

static const struct e2b_route routes[] = {
    { "POST", PROCESS "Start", .stream = start },
    { "POST", PROCESS "Connect", .stream = join },
    { "POST", PROCESS "List", .unary = list },
    { "POST", PROCESS "Update", .unary = update },
    { "POST", PROCESS "SendInput", .unary = send_input },
    { "POST", PROCESS "CloseStdin", .unary = close_stdin },
    { "POST", PROCESS "SendSignal", .unary = send_signal },
    { "POST", PROCESS "StreamInput", .unary = stream_input },
};

const struct e2b_routes e2b_process_routes = { routes, ARRAY_SIZE(routes) };
