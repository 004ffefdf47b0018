// SPDX-License-Identifier: Apache-2.0
#include "client/typed/request.h"

#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "holt.h"

json_t *request_value(json_t *request, const char *name, json_t *value)
{
    if (request && value && json_object_set_new(request, name, value) == 0)
        return request;
    if (!request)
        json_decref(value);
    json_decref(request);
    return NULL;
}

json_t *request_for(const char *sandbox)
{
    return request_value(json_object(), "sandboxId", sandbox ? json_string(sandbox) : NULL);
}

json_t *request_text(json_t *request, const char *name, const char *value)
{
    return value ? request_value(request, name, json_string(value)) : request;
}

json_t *request_u64(json_t *request, const char *name, uint64_t value)
{
    return value ? request_value(request, name, json_u64(value)) : request;
}

json_t *request_true(json_t *request, const char *name, bool value)
{
    return value ? request_value(request, name, json_true()) : request;
}

json_t *request_map(const char *const *pairs)
{
    json_t *map = json_object();

    for (; map && *pairs; pairs++) {
        const char *equals = strchr(*pairs, '=');
        json_t *key = equals ? json_stringn(*pairs, (size_t)(equals - *pairs)) : NULL;

        map = key ? request_text(map, json_string_value(key), equals + 1)
                  : request_value(map, "", NULL);
        json_decref(key);
    }
    return map;
}

json_t *request_texts(const char *const *values)
{
    cleanup_json json_t *list = json_array();

    for (; values && *values; values++)
        if (json_array_append_new(list, json_string(*values)) < 0)
            return NULL;
    return json_incref(list);
}

json_t *request_process(const struct holt_command *command, bool has_stdin)
{
    json_t *process = request_value(json_object(), "args", request_texts(command->args));

    if (command->env)
        process = request_value(process, "env", request_map(command->env));
    process = request_text(process, "cwd", command->cwd);
    process = request_u64(process, "timeoutMs", command->timeout_ms);
    process = request_text(process, "tag", command->tag);
    process = request_text(process, "user", command->user);
    process = request_true(process, "stdin", has_stdin);
    if (command->rows && command->columns)
        process = request_value(process, "terminal",
                                json_pack("{s:I,s:I}", "rows", (json_int_t)command->rows, "columns",
                                          (json_int_t)command->columns));
    return process;
}

json_t *request_sandbox(json_t *request, const struct holt_sandbox_options *options)
{
    json_t *limits = json_object();

    limits = request_u64(limits, "memoryBytes", options->memory_bytes);
    if (options->cpu_millis)
        limits = request_value(limits, "cpuMillis", json_integer(options->cpu_millis));
    if (options->pids)
        limits = request_value(limits, "pids", json_integer(options->pids));
    request = request_text(request, "template", options->template_name);
    request = request_text(request, "runtime", options->runtime);
    return request_value(request, "limits", limits);
}
