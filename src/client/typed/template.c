// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/messages.h"
#include "client/message/request.h"
#include "holt.h"

static void template_fill(void *result, struct holt_template *template,
                          const struct msg_template *message)
{
    (void)result;
    *template = (struct holt_template){
        .name = message->name,
        .kind = message->kind,
        .size_bytes = message->size_bytes,
        .files = message->files,
        .created_ms = message->created_at * 1000,
        .owner = message->owner,
        .owner_name = message->owner_name,
        .shared_with = message->shared_with,
        .shared_count = message->shared_with_count,
        .is_public = message->public,
        .digest = message->digest,
        .command = message->command,
        .command_count = message->command_count,
        .ports = message->image ? message->image->ports : NULL,
        .port_count = message->image ? message->image->ports_count : 0,
        .shared_bytes = message->shared_bytes,
    };
}

static int list_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_list_templates_response *reply = message;
    struct holt_template_list *list = result;

    (void)error;
    list->count = reply->templates_count;
    list->items = RESULT_LIST(result, struct holt_template, template_fill, reply->templates,
                              reply->templates_count);
    return 0;
}

static int templates_list(struct holt *holt, bool wants_all, int64_t deadline,
                          struct holt_template_list **ret, struct holt_error *error)
{
    const struct msg_list_templates_request request = { .all = wants_all };
    const struct client_call call = { &method_template_service_list, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), list_fill, ret, error);
}

int holt_template_list(struct holt *holt, int64_t deadline, struct holt_template_list **ret,
                       struct holt_error *error)
{
    return templates_list(holt, false, deadline, ret, error);
}

int holt_template_list_all(struct holt *holt, int64_t deadline, struct holt_template_list **ret,
                           struct holt_error *error)
{
    return templates_list(holt, true, deadline, ret, error);
}

static int found_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_list_templates_response *reply = message;

    if (reply->templates_count != 1)
        return error_set(error, "internal", "the daemon sent %zu templates instead of one",
                         reply->templates_count);
    template_fill(result, result, reply->templates);
    return 0;
}

int holt_template_find(struct holt *holt, const char *name, int64_t deadline,
                       struct holt_template **ret, struct holt_error *error)
{
    const struct msg_list_templates_request request = { .name = name };
    const struct client_call call = { &method_template_service_list, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), found_fill, ret, error);
}

static int pruned_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_prune_templates_response *reply = message;
    struct holt_template_pruned *pruned = result;

    (void)error;
    pruned->count = reply->templates_count;
    pruned->items = RESULT_LIST(result, struct holt_template, template_fill, reply->templates,
                                reply->templates_count);
    pruned->freed_bytes = reply->freed_bytes;
    return 0;
}

int holt_template_prune(struct holt *holt, const struct holt_template_prune_options *options,
                        int64_t deadline, struct holt_template_pruned **ret,
                        struct holt_error *error)
{
    struct holt_template_prune_options given = HOLT_INIT(holt_template_prune_options);
    struct msg_prune_templates_request request;
    const struct client_call call = { &method_template_service_prune, &request, false, deadline };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    request = (struct msg_prune_templates_request){
        .all = given.wants_all,
        .older_ms = given.older_ms,
        .dry_run = given.is_dry,
    };
    return client_call_for(holt, &call, sizeof(**ret), pruned_fill, ret, error);
}

struct import {
    struct holt_import_options options;
    struct holt_template *template; /* a result */
};

static int import_take(void *context, void **result, const void *message, struct holt_error *error)
{
    const struct msg_import_response *reply = message;
    const struct msg_import_progress *progress = reply->progress;
    struct import *import = context;

    if (reply->template && !import->template) {
        template_fill(*result, *result, reply->template);
        import->template = TAKE_PTR(*result);
    }
    if (progress && progress->source_total > 0 && import->options.on_source)
        import->options.on_source(import->options.context, progress->source_bytes,
                                  progress->source_total);
    if (progress && import->options.on_progress &&
        import->options.on_progress(import->options.context, progress->bytes, progress->files) != 0)
        return error_set(error, "canceled", "the caller canceled the import");
    return 0;
}

static int settings_set(struct msg_template_settings *ret,
                        const struct holt_template_settings *options, struct arena *arena,
                        struct holt_error *error)
{
    struct holt_template_settings given = HOLT_INIT(holt_template_settings);

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    *ret = (struct msg_template_settings){
        .workdir = given.workdir,
        .user = given.user,
        .start_command = given.start_command,
        .ready_command = given.ready_command,
        .allow_setuid = given.allows_setuid,
        .cpus = given.cpus,
        .memory_bytes = given.memory_bytes,
        .runtime = given.runtime,
        .runtime_min = given.runtime_min,
    };
    return request_pairs(arena, given.env, &ret->env, &ret->env_count, error);
}

/* Follows an import or a pull until it has made its template. */
static int import_follow(struct holt *holt, struct messages_call *call, struct import *import,
                         struct holt_template **ret, struct holt_error *error)
{
    cleanup_result struct holt_template *template = NULL;
    int r;

    call->each = import_take;
    call->context = import;
    call->size = sizeof(struct holt_template);
    r = messages_follow(holt, call, error);
    template = import->template;
    if (r < 0)
        return -1;
    if (!template)
        return error_set(error, "internal", "the daemon ended the import without a template");
    if (ret)
        *ret = TAKE_PTR(template);
    return 0;
}

int holt_template_import(struct holt *holt, const struct holt_import_options *options,
                         int64_t deadline, struct holt_template **ret, struct holt_error *error)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(REQUEST_BYTES_MAX);
    struct import import = { .options = HOLT_INIT(holt_import_options) };
    struct msg_template_settings settings;
    struct msg_import_request request;
    struct messages_call call = {
        .method = &method_template_service_import,
        .request = &request,
        .deadline = deadline,
    };

    if (options_take(&import.options, sizeof(import.options), options, error) < 0 ||
        settings_set(&settings, import.options.settings, &arena, error) < 0)
        return -1;
    request = (struct msg_import_request){
        .name = import.options.name,
        .path = import.options.path,
        .settings = import.options.settings ? &settings : NULL,
    };
    return import_follow(holt, &call, &import, ret, error);
}

int holt_template_pull(struct holt *holt, const struct holt_pull_options *options, int64_t deadline,
                       struct holt_template **ret, struct holt_error *error)
{
    struct holt_pull_options given = HOLT_INIT(holt_pull_options);
    struct import import = { .options = HOLT_INIT(holt_import_options) };
    struct msg_pull_request request;
    struct messages_call call = {
        .method = &method_template_service_pull,
        .request = &request,
        .deadline = deadline,
    };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    request = (struct msg_pull_request){
        .reference = given.reference,
        .username = given.username,
        .password = given.password,
    };
    import.options.on_progress = given.on_progress;
    import.options.on_source = given.on_source;
    import.options.context = given.context;
    return import_follow(holt, &call, &import, ret, error);
}

struct push {
    struct holt_push_options options;
    struct holt_pushed_image *image; /* a result */
};

static int push_take(void *context, void **result, const void *message, struct holt_error *error)
{
    const struct msg_push_response *reply = message;
    const struct msg_import_progress *progress = reply->progress;
    struct push *push = context;

    (void)error;
    if (reply->image && !push->image) {
        push->image = *result;
        *push->image = (struct holt_pushed_image){
            .reference = reply->image->reference,
            .digest = reply->image->digest,
        };
        *result = NULL;
    }
    if (progress && progress->source_total > 0 && push->options.on_source)
        push->options.on_source(push->options.context, progress->source_bytes,
                                progress->source_total);
    return 0;
}

int holt_template_push(struct holt *holt, const struct holt_push_options *options, int64_t deadline,
                       struct holt_pushed_image **ret, struct holt_error *error)
{
    cleanup_result struct holt_pushed_image *image = NULL;
    struct push push = { .options = HOLT_INIT(holt_push_options) };
    struct msg_push_request request;
    struct messages_call call = {
        .method = &method_template_service_push,
        .request = &request,
        .deadline = deadline,
        .each = push_take,
        .context = &push,
        .size = sizeof(struct holt_pushed_image),
    };
    int r;

    if (options_take(&push.options, sizeof(push.options), options, error) < 0)
        return -1;
    request = (struct msg_push_request){
        .name = push.options.name,
        .reference = push.options.reference,
        .username = push.options.username,
        .password = push.options.password,
    };
    r = messages_follow(holt, &call, error);
    image = push.image;
    if (r < 0)
        return -1;
    if (!image)
        return error_set(error, "internal", "the daemon ended the push without an image");
    if (ret)
        *ret = TAKE_PTR(image);
    return 0;
}

struct build {
    struct holt_build_options options;
    struct holt_template *template; /* a result */
};

static int build_take(void *context, void **result, const void *message, struct holt_error *error)
{
    const struct msg_build_template_response *reply = message;
    struct build *build = context;

    (void)error;
    for (size_t i = 0; build->options.on_line && i < reply->lines_count; i++)
        build->options.on_line(build->options.context, reply->lines[i]);
    if (reply->template && !build->template) {
        template_fill(*result, *result, reply->template);
        build->template = TAKE_PTR(*result);
    }
    return 0;
}

int holt_template_build(struct holt *holt, const struct holt_build_options *options,
                        int64_t deadline, struct holt_template **ret, struct holt_error *error)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(REQUEST_BYTES_MAX);
    cleanup_result struct holt_template *template = NULL;
    struct build build = { .options = HOLT_INIT(holt_build_options) };
    struct msg_build_template_request request;
    struct messages_call call = {
        .method = &method_template_service_build,
        .request = &request,
        .deadline = deadline,
        .each = build_take,
        .context = &build,
        .size = sizeof(struct holt_template),
    };
    int r;

    if (options_take(&build.options, sizeof(build.options), options, error) < 0)
        return -1;
    request = (struct msg_build_template_request){
        .name = build.options.name,
        .dockerfile = build.options.dockerfile,
        .sandbox_id = build.options.sandbox,
        .path = build.options.path,
        .target = build.options.target,
        .no_cache = build.options.is_forced,
    };
    if (request_pairs(&arena, build.options.args, &request.args, &request.args_count, error) < 0)
        return -1;
    r = messages_follow(holt, &call, error);
    template = build.template;
    if (r < 0)
        return -1;
    if (!template)
        return error_set(error, "internal", "the daemon ended the build without a template");
    if (ret)
        *ret = TAKE_PTR(template);
    return 0;
}

static int committed_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_commit_response *reply = message;

    if (!reply->template)
        return reply_lacks("template", error);
    template_fill(result, result, reply->template);
    return 0;
}

int holt_template_commit(struct holt *holt, const char *sandbox, const char *name, int64_t deadline,
                         struct holt_template **ret, struct holt_error *error)
{
    const struct msg_commit_request request = { .sandbox_id = sandbox, .name = name };
    const struct client_call call = { &method_template_service_commit, &request, false, deadline };

    return client_call_for(holt, &call, sizeof(**ret), committed_fill, ret, error);
}

static int shared_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_share_template_response *reply = message;

    if (!reply->template)
        return reply_lacks("template", error);
    template_fill(result, result, reply->template);
    return 0;
}

int holt_template_share(struct holt *holt, const char *name,
                        const struct holt_share_options *options, int64_t deadline,
                        struct holt_template **ret, struct holt_error *error)
{
    struct holt_share_options given = HOLT_INIT(holt_share_options);
    struct msg_share_template_request request;
    const struct client_call call = { &method_template_service_share, &request, false, deadline };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    request = (struct msg_share_template_request){
        .name = name,
        .owners = given.owners,
        .owners_count = request_count(given.owners),
        .public = given.is_public,
    };
    return client_call_for(holt, &call, sizeof(**ret), shared_fill, ret, error);
}

int holt_template_remove(struct holt *holt, const char *name, int64_t deadline,
                         struct holt_error *error)
{
    const struct msg_remove_template_request request = { .name = name };
    const struct client_call call = { &method_template_service_remove, &request, false, deadline };

    return client_call_void(holt, &call, error);
}

static int runtime_set_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_set_template_runtime_response *reply = message;

    if (!reply->template)
        return reply_lacks("template", error);
    template_fill(result, result, reply->template);
    return 0;
}

int holt_template_set_runtime(struct holt *holt, const char *name,
                              const struct holt_template_runtime *runtime, int64_t deadline,
                              struct holt_template **ret, struct holt_error *error)
{
    const struct msg_set_template_runtime_request request = { .name = name,
                                                              .runtime = runtime->runtime,
                                                              .runtime_min = runtime->min };
    const struct client_call call = { &method_template_service_set_runtime, &request, false,
                                      deadline };

    return client_call_for(holt, &call, sizeof(**ret), runtime_set_fill, ret, error);
}
