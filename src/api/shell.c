// SPDX-License-Identifier: Apache-2.0
#include "host/shell/shell.h"

#include <errno.h>
#include <string.h>

#include "api/message/fields.h"
#include "api/message/sandbox_ref.h"
#include "api/service.h"
#include "api/stream/shell_stream.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "host/sandbox/sandbox.h"

static int name_get(const json_t *request, const char **ret, struct err *err)
{
    int r = field_needed(request, "name", ret, err);

    if (r == 0 && !is_handle(*ret, SHELL_NAME_MAX))
        return err_set(err, ERR_INVALID,
                       "'%.100s' cannot name a shell: letters, digits, '.', '_' and '-', a letter "
                       "or digit first, at most %d",
                       *ret, SHELL_NAME_MAX);
    return r;
}

/* Text with a NUL inside would be cut there. */
static int command_get(const json_t *request, const char **ret, struct err *err)
{
    const json_t *value = json_object_get(request, "command");
    int r = json_get_text(request, "command", ret, err);

    if (r == 0 && json_is_string(value) && json_string_length(value) != strlen(*ret))
        return err_set(err, ERR_INVALID, "field 'command' has a NUL inside");
    return r;
}

int shell_service_run(const struct call *call, const json_t *request, struct stream **ret,
                      struct err *err)
{
    static const char *const fields[] = { "sandboxId", "name", "command", "timeoutMs", NULL };
    struct shell_command command = { .text = "" };
    const char *sandbox = NULL;
    int r = json_only_fields(request, fields, err);

    if (r == 0)
        r = field_sandbox(request, &sandbox, err);
    if (r == 0)
        r = name_get(request, &command.name, err);
    if (r == 0)
        r = command_get(request, &command.text, err);
    if (r == 0)
        r = field_duration(request, "timeoutMs", &command.timeout_ms, err);
    return r < 0 ? r : shell_stream_run(call, sandbox, &command, ret, err);
}

static json_t *shell_json(const struct shell_info *info)
{
    return json_pack("{s:s, s:s, s:s, s:b, s:I}", "name", info->name, "kind",
                     shell_kind_name(info->kind), "processId", info->process, "busy", info->is_busy,
                     "waiting", (json_int_t)info->waiting);
}

/* The sandbox and the name that a request is about. */
static int target_get(const struct call *call, const json_t *request, struct sandbox **ret,
                      const char **ret_name, struct err *err)
{
    static const char *const fields[] = { "sandboxId", "name", NULL };
    int r = json_only_fields(request, fields, err);

    if (r == 0)
        r = name_get(request, ret_name, err);
    return r < 0 ? r : sandbox_ref_find(call, request, ret, err);
}

int shell_service_open(const struct call *call, const json_t *request, json_t **ret_reply,
                       struct err *err)
{
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    struct shell_info info = { 0 };
    const char *name = NULL;
    int r = target_get(call, request, &sandbox, &name, err);

    if (r == 0)
        r = shell_open(sandbox, name, &info, err);
    if (r < 0)
        return r;
    *ret_reply = json_pack("{s:o}", "shell", shell_json(&info));
    return *ret_reply ? 0 : err_sys(err, -ENOMEM, "write the reply");
}

int shell_service_remove(const struct call *call, const json_t *request, json_t **ret_reply,
                         struct err *err)
{
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    const char *name = NULL;
    int r = target_get(call, request, &sandbox, &name, err);

    (void)ret_reply;
    return r < 0 ? r : shell_remove(sandbox, name, err);
}

int shell_service_list(const struct call *call, const json_t *request, json_t **ret_reply,
                       struct err *err)
{
    static const char *const fields[] = { "sandboxId", NULL };
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    cleanup_free struct shell_info *infos = NULL;
    cleanup_json json_t *list = json_array();
    size_t count = 0;
    int r = json_only_fields(request, fields, err);

    if (r == 0)
        r = sandbox_ref_find(call, request, &sandbox, err);
    if (r == 0)
        r = shell_list(sandbox, &infos, &count, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        if (json_array_append_new(list, shell_json(&infos[i])) < 0)
            return err_sys(err, -ENOMEM, "list shells");
    *ret_reply = json_pack("{s:O}", "shells", list);
    return *ret_reply ? 0 : err_sys(err, -ENOMEM, "list shells");
}
