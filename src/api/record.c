// SPDX-License-Identifier: Apache-2.0
/* The part of ProcessService that reads records of processes, running or ended. */
#include "host/process/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/message/process_messages.h"
#include "api/message/process_request.h"
#include "api/message/process_start.h"
#include "api/message/sandbox_ref.h"
#include "api/service.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "host/process/process.h"
#include "host/sandbox/sandbox.h"

static void record_drop(struct record **record)
{
    record_unref(*record);
}

static int record_find(const struct call *call, const struct process_name *name,
                       struct sandbox **ret_sandbox, struct record **ret, struct err *err)
{
    int r = sandbox_find(call->host, name->sandbox, ret_sandbox, err);

    return r < 0 ? r : sandbox_find_record(*ret_sandbox, name->process, ret, err);
}

static json_t *record_json(struct record *record, bool is_listed)
{
    struct record_info info;

    record_get(record, &info);
    return process_info_json(&info, is_listed);
}

static int reply_check(const json_t *reply, struct err *err)
{
    return reply ? 0 : err_sys(err, -ENOMEM, "write the reply");
}

int process_service_start(const struct call *call, const json_t *request, json_t **ret_reply,
                          struct err *err)
{
    cleanup_with(start_request_done) struct start_request wanted = { 0 };
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    cleanup_with(record_drop) struct record *record = NULL;
    struct process_started_as started = { .process = NULL };
    int r = start_request_parse(request, &wanted, err);

    if (r == 0)
        r = sandbox_find(call->host, wanted.sandbox, &sandbox, err);
    if (r < 0)
        return r;
    wanted.process.spec.is_detached = true;
    r = process_start_or_join(sandbox, &wanted.process.spec, &started, err);
    if (r < 0)
        return r;
    record = started.record;
    *ret_reply = json_pack("{s:o, s:b}", "process", record_json(record, false), "joined",
                           started.process == NULL);
    process_unref(started.process);
    return reply_check(*ret_reply, err);
}

int process_service_get(const struct call *call, const json_t *request, json_t **ret_reply,
                        struct err *err)
{
    static const char *const fields[] = { "sandboxId", "processId", NULL };
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    cleanup_with(record_drop) struct record *record = NULL;
    struct process_name name;
    int r = json_only_fields(request, fields, err);

    if (r == 0)
        r = process_name_parse(request, &name, err);
    if (r == 0)
        r = record_find(call, &name, &sandbox, &record, err);
    if (r < 0)
        return r;
    *ret_reply = json_pack("{s:o}", "process", record_json(record, false));
    return reply_check(*ret_reply, err);
}

static bool has_tag(struct record *record, const char *tag)
{
    struct record_info info;

    record_get(record, &info);
    return !tag || (info.spec->tag && strcmp(info.spec->tag, tag) == 0);
}

int process_service_list(const struct call *call, const json_t *request, json_t **ret_reply,
                         struct err *err)
{
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    cleanup_free struct record **records = NULL;
    struct list_request wanted = { 0 };
    size_t count = 0;
    json_t *list;
    int r = list_request_parse(request, &wanted, err);

    if (r == 0)
        r = sandbox_find(call->host, wanted.sandbox, &sandbox, err);
    if (r < 0)
        return r;
    sandbox_list_records(sandbox, &records, &count);
    list = json_array();
    for (size_t i = 0; i < count; i++) {
        if (has_tag(records[i], wanted.tag))
            (void)json_array_append_new(list, record_json(records[i], true));
        record_unref(records[i]);
    }
    *ret_reply = json_pack("{s:o}", "processes", list);
    return reply_check(*ret_reply, err);
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

int process_service_wait(const struct call *call, const json_t *request, json_t **ret_reply,
                         struct err *err)
{
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    cleanup_with(record_drop) struct record *record = NULL;
    struct wait_request wanted = { 0 };
    struct process_written written;
    struct process_end end;
    int r = wait_request_parse(request, &wanted, err);

    if (r == 0)
        r = record_find(call, &wanted.name, &sandbox, &record, err);
    if (r < 0)
        return r;
    r = attached_wait(call, sandbox, record, wanted.timeout_ms, &end);
    if (r < 0 && r != -ETIMEDOUT)
        return err_sys(err, r, "wait for process '%.20s'", wanted.name.process);
    process_written_get(record, &written);
    *ret_reply = r < 0 ? json_pack("{s:b}", "timedOut", 1)
                       : json_pack("{s:o}", "ended", process_ended_json(&end, &written));
    return reply_check(*ret_reply, err);
}
