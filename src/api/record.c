// SPDX-License-Identifier: Apache-2.0
/* The part of ProcessService that reads records of processes, running or ended. */
#include "host/process/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/message/process_messages.h"
#include "api/message/process_spec.h"
#include "api/message/process_start.h"
#include "api/service.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "host/process/output_times.h"
#include "host/process/process.h"
#include "host/sandbox/sandbox.h"

static int record_find(const struct call *call, const char *sandbox_id, const char *process_id,
                       struct sandbox **ret_sandbox, struct record **ret, struct err *err)
{
    int r = sandbox_find(call->host, call->caller, sandbox_id, ret_sandbox, err);

    return r < 0 ? r : sandbox_find_record(*ret_sandbox, process_id, ret, err);
}

int process_service_start(const struct call *call, const struct msg_start_request *request,
                          struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(record_unref_slot) struct record *record = NULL;
    struct process_started_as started = { .process = NULL };
    struct msg_process_info message;
    struct process_spec spec;
    struct record_info info;
    int r = process_spec_fill(request->process, call->arena, &spec, err);

    if (r == 0)
        r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);
    if (r < 0)
        return r;
    spec.key = text_or_null(request->idempotency_key);
    spec.is_detached = true;
    r = process_start_or_join(sandbox, &spec, &started, err);
    if (r < 0)
        return r;
    record = started.record;
    record_get(record, &info);
    message = process_info_message(&info, false, call->arena);
    r = call_reply(
        call, MESSAGE(msg_start_response, .process = &message, .joined = started.process == NULL),
        err);
    process_unref(started.process);
    return r;
}

/* Returns a copy of the extent with the times of the output. */
static const struct msg_extent *extent_with_marks(const struct call *call, struct record *record,
                                                  enum output_stream stream,
                                                  const struct msg_extent *extent)
{
    cleanup_free struct output_mark *times = NULL;
    size_t count = record_copy_times(record, stream, &times);
    struct msg_extent *copy = arena_take(call->arena, 1, sizeof(*copy));
    struct msg_output_mark *marks = arena_take(call->arena, count, sizeof(*marks));

    for (size_t i = 0; i < count; i++)
        marks[i] = (struct msg_output_mark){ times[i].offset, times[i].time_ms };
    *copy = *extent;
    copy->marks = marks;
    copy->marks_count = count;
    return copy;
}

int process_service_get(const struct call *call, const struct msg_get_process_request *request,
                        struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(record_unref_slot) struct record *record = NULL;
    struct msg_process_info message;
    struct record_info info;
    int r = record_find(call, request->sandbox_id, request->process_id, &sandbox, &record, err);

    if (r < 0)
        return r;
    record_get(record, &info);
    message = process_info_message(&info, false, call->arena);
    message.stdout = extent_with_marks(call, record, PROCESS_OUT, message.stdout);
    message.stderr = extent_with_marks(call, record, PROCESS_ERR, message.stderr);
    return call_reply(call, MESSAGE(msg_get_process_response, .process = &message), err);
}

static bool has_tag(const struct record_info *info, const char *tag)
{
    return *tag == '\0' || (info->spec->tag && strcmp(info->spec->tag, tag) == 0);
}

int process_service_list(const struct call *call, const struct msg_list_processes_request *request,
                         struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_free struct record **records = NULL;
    struct msg_process_info *processes;
    struct record_info *infos;
    size_t count = 0, shown = 0;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r < 0)
        return r;
    sandbox_list_records(sandbox, &records, &count);
    infos = arena_take(call->arena, count, sizeof(*infos));
    processes = arena_take(call->arena, count, sizeof(*processes));
    for (size_t i = 0; i < count; i++) {
        record_get(records[i], &infos[i]);
        if (has_tag(&infos[i], request->tag))
            processes[shown++] = process_info_message(&infos[i], true, call->arena);
    }
    r = call_reply(
        call,
        MESSAGE(msg_list_processes_response, .processes = processes, .processes_count = shown),
        err);
    for (size_t i = 0; i < count; i++)
        record_unref(records[i]);
    return r;
}

/* A client that waits is one that uses the sandbox. */
static int attached_wait(const struct call *call, struct sandbox *sandbox, struct record *record,
                         uint64_t timeout_ms, struct process_end *ret)
{
    int r;

    sandbox_attach(sandbox);
    r = record_wait(record, call->connection_fd, timeout_ms, ret);
    sandbox_detach(sandbox, NULL);
    return r;
}

int process_service_wait(const struct call *call, const struct msg_wait_request *request,
                         struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(record_unref_slot) struct record *record = NULL;
    struct process_written written;
    struct process_end end;
    struct msg_ended message;
    int r = record_find(call, request->sandbox_id, request->process_id, &sandbox, &record, err);

    if (r < 0)
        return r;
    r = attached_wait(call, sandbox, record, request->timeout_ms, &end);
    if (r == -ETIMEDOUT)
        return call_reply(call, MESSAGE(msg_wait_response, .timed_out = true), err);
    if (r < 0)
        return err_sys(err, r, "wait for process '%.20s'", request->process_id);
    process_written_get(record, &written);
    message = process_ended_message(&end, &written);
    return call_reply(call, MESSAGE(msg_wait_response, .ended = &message), err);
}
