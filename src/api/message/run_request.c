// SPDX-License-Identifier: Apache-2.0
#include "api/message/run_request.h"

#include "api/message/fields.h"
#include "base/err.h"
#include "base/json.h"

static int limits_parse(const json_t *object, struct sandbox_limits *ret, struct err *err)
{
    static const char *const fields[] = { "memoryBytes", "cpuMillis", "pids", NULL };
    int r = json_only_fields(object, fields, err);

    if (r == 0)
        r = json_get_u64(object, "memoryBytes", &ret->memory_bytes, err);
    if (r == 0)
        r = json_get_u32(object, "cpuMillis", &ret->cpu_millis, err);
    if (r == 0)
        r = json_get_u32(object, "pids", &ret->pids, err);
    return r;
}

int machine_request_parse(const json_t *object, struct machine_spec *ret, struct err *err)
{
    const json_t *limits = NULL;
    int r = field_name(object, "template", &ret->template, err);

    if (r == 0)
        r = field_name(object, "runtime", &ret->runtime, err);
    if (r == 0)
        r = json_get_object(object, "limits", &limits, err);
    if (r == 0 && limits)
        r = limits_parse(limits, &ret->limits, err);
    return r;
}

static int sandbox_parse(const json_t *object, struct machine_spec *ret, struct err *err)
{
    static const char *const fields[] = { "template", "runtime", "limits", NULL };
    const json_t *sandbox = NULL;
    int r = json_get_object(object, "sandbox", &sandbox, err);

    if (r < 0 || !sandbox)
        return r;
    r = json_only_fields(sandbox, fields, err);
    return r < 0 ? r : machine_request_parse(sandbox, ret, err);
}

int run_request_parse(const json_t *object, struct run_request *ret, struct err *err)
{
    static const char *const fields[] = { "sandbox", "process", NULL };
    int r = json_only_fields(object, fields, err);

    if (r == 0)
        r = sandbox_parse(object, &ret->machine, err);
    if (r == 0)
        r = process_request_parse(object, &ret->process, err);
    return r;
}

void run_request_done(struct run_request *request)
{
    process_request_done(&request->process);
}
