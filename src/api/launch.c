// SPDX-License-Identifier: Apache-2.0
/* ProcessService/Launch: a process with a port, and the wait until it answers there. */
#include <errno.h>
#include <string.h>

#include "api/message/fields.h"
#include "api/message/process_messages.h"
#include "api/message/process_request.h"
#include "api/message/process_start.h"
#include "api/message/sandbox_ref.h"
#include "api/service.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "host/process/record.h"
#include "host/process/service.h"
#include "host/sandbox/sandbox.h"

enum { READY_TIMEOUT_MS = 30 * 1000 };

static void record_drop(struct record **record)
{
    record_unref(*record);
}

struct launch_request {
    struct start_request start;
    bool waits; /* until it is ready */
    struct readiness_spec ready;
};

static void launch_request_done(struct launch_request *request)
{
    start_request_done(&request->start);
}

/* An enum is its name or its number. */
static int restart_get(const json_t *object, enum restart *ret, struct err *err)
{
    static const char *const names[] = {
        [RESTART_NO] = "RESTART_NO",
        [RESTART_ON_FAILURE] = "RESTART_ON_FAILURE",
        [RESTART_ALWAYS] = "RESTART_ALWAYS",
    };
    const json_t *number = json_field(object, "restart");
    const char *name = names[RESTART_NO];
    int r;

    if (json_is_integer(number) && json_integer_value(number) >= 0 &&
        json_integer_value(number) < (json_int_t)ARRAY_SIZE(names)) {
        *ret = (enum restart)json_integer_value(number);
        return 0;
    }
    r = json_get_text(object, "restart", &name, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strcmp(names[i], name) == 0) {
            *ret = (enum restart)i;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID,
                   "field 'restart' must be RESTART_NO, RESTART_ON_FAILURE or RESTART_ALWAYS, "
                   "not '%.40s'",
                   name);
}

static int port_get(const json_t *object, uint16_t *ret, struct err *err)
{
    uint32_t port = 0;
    int r = json_get_u32(object, "port", &port, err);

    if (r == 0 && port > UINT16_MAX)
        r = err_set(err, ERR_INVALID, "field 'port' must be from 1 to %d", UINT16_MAX);
    *ret = (uint16_t)port;
    return r;
}

static int ready_parse(const json_t *object, struct launch_request *ret, struct err *err)
{
    static const char *const fields[] = { "httpPath", "timeoutMs", NULL };
    const json_t *ready = NULL;
    int r = json_get_object(object, "ready", &ready, err);

    ret->waits = ready;
    if (r < 0 || !ready)
        return r;
    r = json_only_fields(ready, fields, err);
    if (r == 0)
        r = json_get_text(ready, "httpPath", &ret->ready.http_path, err);
    if (r == 0 && ret->ready.http_path && *ret->ready.http_path != '/')
        r = err_set(err, ERR_INVALID, "field 'httpPath' must begin with '/'");
    if (r == 0)
        r = field_duration(ready, "timeoutMs", &ret->ready.timeout_ms, err);
    if (r == 0 && ret->start.process.spec.port == 0)
        r = err_set(err, ERR_INVALID, "field 'ready' needs a 'port'");
    if (ret->ready.timeout_ms == 0)
        ret->ready.timeout_ms = READY_TIMEOUT_MS;
    return r;
}

static int launch_request_parse(const json_t *object, struct launch_request *ret, struct err *err)
{
    static const char *const fields[] = { "sandboxId", "process", "idempotencyKey",
                                          "port",      "restart", "ready",
                                          NULL };
    struct process_spec *spec = &ret->start.process.spec;
    int r = json_only_fields(object, fields, err);

    if (r == 0)
        r = start_fields_parse(object, &ret->start, err);
    if (r == 0)
        r = port_get(object, &spec->port, err);
    if (r == 0)
        r = restart_get(object, &spec->restart, err);
    if (r == 0)
        r = ready_parse(object, ret, err);
    if (r == 0 && spec->has_terminal && spec->restart != RESTART_NO)
        r = err_set(err, ERR_INVALID, "a process with a terminal cannot be started again");
    spec->is_detached = true;
    return r;
}

static int launch(struct sandbox *sandbox, const struct process_spec *spec, struct record **ret,
                  bool *ret_joined, struct err *err)
{
    int r = service_launch(sandbox, spec, ret, err);

    *ret_joined = r < 0 && err->cause == CAUSE_PROCESS_EXISTS;
    return *ret_joined ? process_join(sandbox, spec, ret, err) : r;
}

static const char *readiness_name(enum readiness readiness)
{
    static const char *const names[] = {
        [SERVICE_READY] = "READINESS_READY",
        [SERVICE_STARTING] = "READINESS_STARTING",
        [SERVICE_ENDED] = "READINESS_ENDED",
    };

    return names[readiness];
}

int process_service_launch(const struct call *call, const json_t *request, json_t **ret_reply,
                           struct err *err)
{
    cleanup_with(launch_request_done) struct launch_request wanted = { .waits = false };
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    cleanup_with(record_drop) struct record *record = NULL;
    enum readiness readiness = SERVICE_STARTING;
    struct record_info info;
    bool is_joined = false;
    int r = launch_request_parse(request, &wanted, err);

    if (r == 0)
        r = sandbox_find(call->host, wanted.start.sandbox, &sandbox, err);
    if (r == 0)
        r = launch(sandbox, &wanted.start.process.spec, &record, &is_joined, err);
    wanted.ready.watch_fd = call->connection_fd;
    if (r == 0 && wanted.waits)
        r = service_wait_ready(sandbox, record, &wanted.ready, &readiness, err);
    if (r < 0)
        return r;
    record_get(record, &info);
    *ret_reply = json_pack("{s:o, s:s, s:b}", "process", process_info_json(&info, false),
                           "readiness", readiness_name(readiness), "joined", is_joined);
    return *ret_reply ? 0 : err_sys(err, -ENOMEM, "write the reply");
}
