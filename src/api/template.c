// SPDX-License-Identifier: Apache-2.0
#include "store/template/template.h"

#include <stdlib.h>
#include <string.h>

#include "api/message/messages.h"
#include "api/message/template_image.h"
#include "api/service.h"
#include "api/stream/work_stream.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "builder/build.h"
#include "builder/prune.h"
#include "host/core/host.h"
#include "host/core/owned_template.h"
#include "host/core/share.h"
#include "host/image/pull.h"
#include "host/machine/runtime_choice.h"
#include "host/observe/event.h"
#include "host/sandbox/sandbox.h"
#include "store/template/settings.h"

/* An import or a pull. */
struct import_stream {
    struct work_stream work;
    struct host *host;
    struct template_record record;
    char *path;
    struct template_settings settings;
    struct caller caller;              /* of a pull */
    char *reference, *user, *password; /* of a pull; NULL: it is an import */
    struct template_info info;         /* under the stream's lock */
};

struct msg_template owned_template_message(const struct template_record *record,
                                           const struct template_info *info)
{
    struct msg_template message = template_message(info);

    message.name = record->name;
    message.owner_name = record->owner;
    return message;
}

static void info_set(struct import_stream *import, const struct template_info *info)
{
    lock_scope(&import->work.lock);

    import->info = *info;
}

static int import_run(struct work_stream *work, struct err *err)
{
    struct import_stream *import = (struct import_stream *)work;
    const struct template_source source = {
        .name = import->record.store_name,
        .path = import->path,
        .settings = import->settings.object ? &import->settings : NULL,
        .progress = work_stream_progress,
        .context = work,
    };
    struct template_info info = { 0 };
    int r = template_import(host_store(import->host), &source, &info, err);

    fault_point("import.made");
    if (r == 0)
        owner_event(import->host, import->record.owner, EVENT_TEMPLATE_IMPORTED,
                    json_pack("{s:s}", "template", info.name));
    else
        owned_template_release(import->host, import->record.store_name);
    info_set(import, &info);
    return r;
}

static int pull_run(struct work_stream *work, struct err *err)
{
    struct import_stream *import = (struct import_stream *)work;
    const struct image_pull pull = {
        .reference = import->reference,
        .user = import->user,
        .password = import->password,
        .progress = work_stream_progress,
        .context = work,
    };
    struct template_info info = { 0 };
    int r;

    caller_set_current(&import->caller);
    r = image_pull(import->host, &import->caller, &pull, &import->record, &info, err);
    info_set(import, &info);
    return r;
}

static int import_tell(struct work_stream *work, struct buf *out)
{
    const struct msg_import_progress progress = work_stream_message(work);

    return message_add(out, MESSAGE(msg_import_response, .progress = &progress));
}

static int import_finish(struct work_stream *work, struct buf *out)
{
    const struct import_stream *import = (const struct import_stream *)work;
    const struct msg_template template = owned_template_message(&import->record, &import->info);

    return message_add(out, MESSAGE(msg_import_response, .template = &template));
}

static void import_free(struct work_stream *work)
{
    struct import_stream *import = (struct import_stream *)work;

    work_stream_done(work);
    free(import->path);
    free(import->reference);
    free(import->user);
    wiped_free(import->password);
    template_settings_done(&import->settings);
    free(import);
}

/* Neither can be stopped; a client that left finds the template later. */
static const struct work_ops import_ops = { "holt-import", import_run, import_tell,
                                            import_finish, NULL,       import_free };
static const struct work_ops pull_ops = { "holt-pull",   pull_run, import_tell,
                                          import_finish, NULL,     import_free };

static struct import_stream *import_new(struct host *host, const char *path,
                                        const struct work_ops *ops)
{
    struct import_stream *import = xcalloc(1, sizeof(*import));

    work_stream_init(&import->work, ops);
    import->host = host;
    import->path = xstrdup(path);
    return import;
}

int template_service_import(const struct call *call, const struct msg_import_request *request,
                            struct stream **ret, struct err *err)
{
    struct import_stream *import;
    int r;

    import = import_new(call->host, request->path, &import_ops);
    r = request->settings
            ? template_settings_parse(json_field(call->message, "settings"), &import->settings, err)
            : 0;
    if (r == 0 && request->settings)
        r = template_runtime_check(import->settings.runtime, import->settings.runtime_min, err);
    if (r == 0)
        r = owned_template_reserve(call->host, call->caller, request->name, &import->record, err);
    if (r == 0) {
        r = work_stream_start(&import->work, ret, err);
        if (r < 0)
            owned_template_release(call->host, import->record.store_name);
    }
    if (r < 0)
        import_free(&import->work);
    return r;
}

int template_service_pull(const struct call *call, const struct msg_pull_request *request,
                          struct stream **ret, struct err *err)
{
    struct import_stream *import = import_new(call->host, "", &pull_ops);
    int r;

    import->caller = *call->caller;
    import->reference = xstrdup(request->reference);
    import->user = xstrdup(request->username);
    import->password = xstrdup(request->password);
    r = work_stream_start(&import->work, ret, err);
    if (r < 0)
        import_free(&import->work);
    return r;
}

/* Finds what the template belongs to, for the caller to free; NULL: nothing. */
static int owner_find(struct host *host, const char *name, char **ret, struct err *err)
{
    if (!build_is_step(name))
        return host_get_template_owner(host, name, ret, err);
    *ret = xstrdup("the cache of builds");
    return 0;
}

static int shares_fill(const struct call *call, const struct template_record *record,
                       struct msg_template *message, struct err *err)
{
    cleanup_free struct share *shares = NULL;
    size_t count = 0;
    int r = owned_template_shares(call->host, call->caller, record, &shares, &count, err);

    if (r == 0)
        shares_message(shares, count, call->arena, &message->public, &message->shared_with,
                       &message->shared_with_count);
    return r;
}

int template_service_share(const struct call *call,
                           const struct msg_share_template_request *request, struct err *err)
{
    const struct sharing sharing = { request->owners, request->owners_count, request->public };
    struct owned_template owned = { .info = { .files = 0 } };
    struct msg_template template;
    int r = owned_template_share(call->host, call->caller, request->name, &sharing, &owned, err);

    if (r < 0)
        return r;
    template = owned_template_message(&owned.record, &owned.info);
    r = shares_fill(call, &owned.record, &template, err);
    if (r < 0)
        return r;
    return call_reply(call, MESSAGE(msg_share_template_response, .template = &template), err);
}

int template_service_set_runtime(const struct call *call,
                                 const struct msg_set_template_runtime_request *request,
                                 struct err *err)
{
    struct owned_template owned = { .info = { .files = 0 } };
    struct msg_template template;
    int r = owned_template_find_own(call->host, call->caller, request->name, &owned.record, err);

    if (r == 0)
        r = template_runtime_write(call->host, owned.record.store_name, request->runtime,
                                   request->runtime_min, err);
    if (r == 0)
        r = template_get_info(host_store(call->host), owned.record.store_name, &owned.info, err);
    if (r < 0)
        return r;
    template = owned_template_message(&owned.record, &owned.info);
    r = shares_fill(call, &owned.record, &template, err);
    if (r < 0)
        return r;
    return call_reply(call, MESSAGE(msg_set_template_runtime_response, .template = &template), err);
}

/* Finds one template, or lists all that the caller sees. The caller frees the array. */
static int templates_find(const struct call *call, const char *name, struct owned_template **ret,
                          size_t *ret_count, struct err *err)
{
    struct owned_template *one;
    int r;

    if (!*name)
        return owned_template_list(call->host, call->caller, ret, ret_count, err);
    one = *ret = xcalloc(1, sizeof(*one));
    *ret_count = 1;
    r = owned_template_find(call->host, call->caller, name, &one->record, err);
    return r < 0
               ? r
               : template_get_info(host_store(call->host), one->record.store_name, &one->info, err);
}

int template_service_list(const struct call *call, const struct msg_list_templates_request *request,
                          struct err *err)
{
    cleanup_free struct owned_template *list = NULL;
    cleanup_free char **owners = NULL;
    struct msg_template *templates;
    size_t count = 0, shown = 0;
    int r = templates_find(call, request->name, &list, &count, err);

    templates = arena_take(call->arena, count, sizeof(*templates));
    owners = xcalloc(count + 1, sizeof(*owners));
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = owner_find(call->host, list[i].info.name, &owners[i], err);
        if (r < 0 || (owners[i] && !request->all && !*request->name))
            continue;
        templates[shown] = owned_template_message(&list[i].record, &list[i].info);
        template_image_fill(call->host, list[i].record.store_name, call->arena, &templates[shown]);
        r = shares_fill(call, &list[i].record, &templates[shown], err);
        templates[shown++].owner = owners[i];
    }
    if (r == 0)
        r = call_reply(
            call,
            MESSAGE(msg_list_templates_response, .templates = templates, .templates_count = shown),
            err);
    for (size_t i = 0; i < count; i++)
        free(owners[i]);
    return r;
}

int template_service_prune(const struct call *call,
                           const struct msg_prune_templates_request *request, struct err *err)
{
    const struct template_prune asked = { request->all, request->older_ms, request->dry_run };
    struct template_pruned pruned = { .items = NULL };
    struct msg_template *templates;
    int r = template_prune(call->host, call->caller, &asked, &pruned, err);

    if (r < 0)
        return r;
    templates = arena_take(call->arena, pruned.count, sizeof(*templates));
    for (size_t i = 0; i < pruned.count; i++)
        templates[i] = owned_template_message(&pruned.items[i].record, &pruned.items[i].info);
    r = call_reply(call,
                   MESSAGE(msg_prune_templates_response, .templates = templates,
                           .templates_count = pruned.count, .freed_bytes = pruned.freed_bytes),
                   err);
    free(pruned.items);
    return r;
}

int template_service_remove(const struct call *call,
                            const struct msg_remove_template_request *request, struct err *err)
{
    return owned_template_remove(call->host, call->caller, request->name, err);
}

int template_service_commit(const struct call *call, const struct msg_commit_request *request,
                            struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    struct template_info info = { 0 };
    struct template_record record;
    struct msg_template template;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0)
        r = owned_template_reserve(call->host, call->caller, request->name, &record, err);
    if (r < 0)
        return r;
    r = sandbox_commit(sandbox, record.store_name, &info, err);
    if (r < 0) {
        owned_template_release(call->host, record.store_name);
        return r;
    }
    template = owned_template_message(&record, &info);
    return call_reply(call, MESSAGE(msg_commit_response, .template = &template), err);
}
