// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/transport/messages.h"
#include "client/typed/request.h"
#include "holt.h"

static void template_read(struct reading *reading, const json_t *object, void *into)
{
    struct holt_template *template = into;

    template->name = read_text(reading, object, "name");
    template->kind = read_text(reading, object, "kind");
    template->size_bytes = read_u64(reading, object, "sizeBytes");
    template->files = read_u64(reading, object, "files");
    template->created_ms = (int64_t)read_u64(reading, object, "createdAt") * 1000;
    template->owner = read_text(reading, object, "owner");
}

static void list_read(struct reading *reading, const json_t *object, void *into)
{
    const json_t *templates = read_array(reading, object, "templates");
    struct holt_template_list *list = into;

    list->count = json_array_size(templates);
    list->items = (const struct holt_template *const *)read_list(
        reading, templates, sizeof(**list->items), template_read);
}

int holt_template_list(struct holt *holt, int64_t deadline, struct holt_template_list **ret,
                       struct holt_error *error)
{
    const struct client_answer answer = { NULL, sizeof(**ret), list_read };
    const struct client_call call = { "TemplateService/List", json_object(), true, deadline };

    return client_call_for(holt, &call, &answer, ret, error);
}

int holt_template_list_all(struct holt *holt, int64_t deadline, struct holt_template_list **ret,
                           struct holt_error *error)
{
    const struct client_answer answer = { NULL, sizeof(**ret), list_read };
    const struct client_call call = { "TemplateService/List",
                                      request_true(json_object(), "all", true), true, deadline };

    return client_call_for(holt, &call, &answer, ret, error);
}

struct import {
    struct holt_import_options options;
    struct holt_template *template; /* a result */
};

static int take_message(void *context, struct reading *reading, const json_t *message,
                        struct holt_error *error)
{
    const json_t *progress = read_object(reading, message, "progress");
    const json_t *template = read_object(reading, message, "template");
    struct import *import = context;
    uint64_t bytes, files;

    if (template && !import->template) {
        import->template =
            result_new(sizeof(*import->template), json_incref((json_t *)(uintptr_t) template));
        template_read(reading, template, import->template);
    }
    if (!progress || !import->options.on_progress)
        return 0;
    bytes = read_u64(reading, progress, "bytes");
    files = read_u64(reading, progress, "files");
    if (import->options.on_progress(import->options.context, bytes, files) != 0)
        return error_set(error, "canceled", "the caller gave the import up");
    return 0;
}

static json_t *request_settings(const struct holt_template_settings *settings)
{
    json_t *request = json_object();

    if (settings->env)
        request = request_value(request, "env", request_map(settings->env));
    request = request_text(request, "workdir", settings->workdir);
    request = request_text(request, "user", settings->user);
    request = request_text(request, "startCommand", settings->start_command);
    request = request_text(request, "readyCommand", settings->ready_command);
    request = request_true(request, "allowSetuid", settings->allows_setuid);
    if (settings->cpus)
        request = request_value(request, "cpus", json_integer(settings->cpus));
    return request_u64(request, "memoryBytes", settings->memory_bytes);
}

int holt_template_import(struct holt *holt, const struct holt_import_options *options,
                         int64_t deadline, struct holt_template **ret, struct holt_error *error)
{
    struct import import = { .options = HOLT_INIT(holt_import_options) };
    struct messages_call call = {
        .method = "holt.v1.TemplateService/Import",
        .deadline = deadline,
        .each = take_message,
        .context = &import,
    };
    struct holt_template_settings settings = HOLT_INIT(holt_template_settings);
    cleanup_result struct holt_template *template = NULL;
    int r;

    if (options_take(&import.options, sizeof(import.options), options, error) < 0 ||
        options_take(&settings, sizeof(settings), import.options.settings, error) < 0)
        return -1;
    call.request = request_text(json_object(), "name", import.options.name);
    call.request = request_text(call.request, "path", import.options.path);
    if (import.options.settings)
        call.request = request_value(call.request, "settings", request_settings(&settings));
    r = messages_follow(holt, &call, error);
    template = import.template;
    if (r < 0)
        return -1;
    if (!template)
        return error_set(error, "internal", "the daemon ended the import without a template");
    if (ret)
        *ret = TAKE_PTR(template);
    return 0;
}

int holt_template_commit(struct holt *holt, const char *sandbox, const char *name, int64_t deadline,
                         struct holt_template **ret, struct holt_error *error)
{
    const struct client_answer answer = { "template", sizeof(**ret), template_read };
    const struct client_call call = { "TemplateService/Commit",
                                      request_text(request_for(sandbox), "name", name), false,
                                      deadline };

    return client_call_for(holt, &call, &answer, ret, error);
}

int holt_template_remove(struct holt *holt, const char *name, int64_t deadline,
                         struct holt_error *error)
{
    const struct client_call call = { "TemplateService/Remove",
                                      request_text(json_object(), "name", name), false, deadline };

    return client_call_void(holt, &call, error);
}
