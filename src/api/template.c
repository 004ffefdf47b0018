// SPDX-License-Identifier: Apache-2.0
#include "store/template/template.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/message/messages.h"
#include "api/service.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "builder/build.h"
#include "host/core/host.h"
#include "host/core/owned_template.h"
#include "host/core/share.h"
#include "host/image/pull.h"
#include "host/observe/event.h"
#include "host/sandbox/sandbox.h"
#include "http/stream.h"
#include "store/template/settings.h"

enum { PROGRESS_INTERVAL_MS = 200 };

/* An import or a pull runs in a thread of its own, as the reply must report progress meanwhile. */
struct import_stream {
    struct stream stream;
    struct host *host;
    struct template_record record;
    char *path;
    struct template_settings settings;
    struct caller caller;              /* of a pull */
    char *reference, *user, *password; /* of a pull; NULL: it is an import */
    struct thread thread;

    struct lock lock; /* over everything below */
    struct cond over;
    bool is_over;
    struct template_progress progress;
    int result; /* of template_import, with err or info filled in */
    struct err err;
    struct template_info info;
};

/* The message of a template under the name that its owner gave it. */
static struct msg_template owned_message(const struct template_record *record,
                                         const struct template_info *info)
{
    struct msg_template message = template_message(info);

    message.name = record->name;
    message.owner_name = record->owner;
    return message;
}

static void import_progress(const struct template_progress *progress, void *context)
{
    struct import_stream *import = context;

    lock_take(&import->lock);
    import->progress = *progress;
    lock_release(&import->lock);
}

static void import_end(struct import_stream *import, int r, const struct template_info *info,
                       const struct err *err)
{
    lock_scope(&import->lock);

    import->result = r;
    import->err = *err;
    import->info = *info;
    import->is_over = true;
    cond_signal(&import->over);
}

static void import_main(void *context)
{
    struct import_stream *import = context;
    const struct template_source source = {
        .name = import->record.store_name,
        .path = import->path,
        .settings = import->settings.object ? &import->settings : NULL,
        .progress = import_progress,
        .context = import,
    };
    struct template_info info = { 0 };
    struct err err = { 0 };
    int r = template_import(host_store(import->host), &source, &info, &err);

    fault_point("import.made");
    if (r == 0)
        owner_event(import->host, import->record.owner, EVENT_TEMPLATE_IMPORTED,
                    json_pack("{s:s}", "template", info.name));
    else
        owned_template_release(import->host, import->record.store_name);
    import_end(import, r, &info, &err);
}

static void pull_main(void *context)
{
    struct import_stream *import = context;
    const struct image_pull pull = {
        .reference = import->reference,
        .user = import->user,
        .password = import->password,
        .progress = import_progress,
        .context = import,
    };
    struct template_info info = { 0 };
    struct err err = { 0 };
    int r;

    caller_set_current(&import->caller);
    r = image_pull(import->host, &import->caller, &pull, &import->record, &info, &err);
    import_end(import, r, &info, &err);
}

/* Waits until the import is over or progress is due. Needs the lock. */
static bool import_wait(struct import_stream *import)
{
    uint64_t until_ms = clock_after_ms(PROGRESS_INTERVAL_MS);

    while (!import->is_over && cond_wait_until(&import->over, &import->lock, until_ms))
        ;
    return import->is_over;
}

/* Progress is sent even without a change: only a write detects a client that has gone. */
static int import_next(struct stream *stream, struct buf *out, struct err *err)
{
    struct import_stream *import = (struct import_stream *)stream;
    bool is_over;
    int r;

    lock_take(&import->lock);
    is_over = import_wait(import);
    if (is_over && import->result < 0) {
        *err = import->err;
        r = import->result == -ECANCELED ? -EIO : import->result;
    } else if (is_over) {
        const struct msg_template template = owned_message(&import->record, &import->info);

        r = message_add(out, MESSAGE(msg_import_response, .template = &template));
    } else {
        const struct msg_import_progress progress = {
            .bytes = import->progress.bytes,
            .files = import->progress.files,
            .source_bytes = import->progress.source_bytes,
            .source_total = import->progress.source_total,
        };

        r = message_add(out, MESSAGE(msg_import_response, .progress = &progress));
    }
    lock_release(&import->lock);
    if (r < 0)
        return err->kind != ERR_NONE ? r : err_sys(err, r, "write a progress message");
    return is_over ? 0 : 1;
}

static void import_free(struct import_stream *import)
{
    cond_destroy(&import->over);
    lock_destroy(&import->lock);
    free(import->path);
    free(import->reference);
    free(import->user);
    if (import->password)
        explicit_bzero(import->password, strlen(import->password));
    free(import->password);
    template_settings_done(&import->settings);
    free(import);
}

/* An import cannot be stopped; a client that left finds it finished later. */
static void import_close(struct stream *stream)
{
    struct import_stream *import = (struct import_stream *)stream;

    thread_join(&import->thread);
    import_free(import);
}

static const struct stream_ops import_ops = { import_next, import_close };

static struct import_stream *import_new(struct host *host, const char *path)
{
    struct import_stream *import = xcalloc(1, sizeof(*import));

    import->stream.ops = &import_ops;
    import->host = host;
    import->path = xstrdup(path);
    lock_init(&import->lock, LOCK_TEMPLATE_IMPORT);
    cond_init(&import->over);
    return import;
}

int template_service_import(const struct call *call, const struct msg_import_request *request,
                            struct stream **ret, struct err *err)
{
    struct import_stream *import;
    int r;

    import = import_new(call->host, request->path);
    r = request->settings
            ? template_settings_parse(json_field(call->message, "settings"), &import->settings, err)
            : 0;
    if (r == 0)
        r = owned_template_reserve(call->host, call->caller, request->name, &import->record, err);
    if (r == 0) {
        r = thread_start(&import->thread, "holt-import", import_main, import);
        if (r < 0)
            owned_template_release(call->host, import->record.store_name);
        r = r < 0 ? err_sys(err, r, "start the import") : 0;
    }
    if (r < 0) {
        import_free(import);
        return r;
    }
    *ret = &import->stream;
    return 0;
}

int template_service_pull(const struct call *call, const struct msg_pull_request *request,
                          struct stream **ret, struct err *err)
{
    struct import_stream *import = import_new(call->host, "");
    int r;

    import->caller = *call->caller;
    import->reference = xstrdup(request->reference);
    import->user = xstrdup(request->username);
    import->password = xstrdup(request->password);
    r = thread_start(&import->thread, "holt-pull", pull_main, import);
    if (r < 0) {
        import_free(import);
        return err_sys(err, r, "start the pull");
    }
    *ret = &import->stream;
    return 0;
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
    template = owned_message(&owned.record, &owned.info);
    r = shares_fill(call, &owned.record, &template, err);
    if (r < 0)
        return r;
    return call_reply(call, MESSAGE(msg_share_template_response, .template = &template), err);
}

int template_service_list(const struct call *call, const struct msg_list_templates_request *request,
                          struct err *err)
{
    cleanup_free struct owned_template *list = NULL;
    cleanup_free char **owners = NULL;
    struct msg_template *templates;
    size_t count = 0, shown = 0;
    int r = owned_template_list(call->host, call->caller, &list, &count, err);

    templates = arena_take(call->arena, count, sizeof(*templates));
    owners = xcalloc(count + 1, sizeof(*owners));
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = owner_find(call->host, list[i].info.name, &owners[i], err);
        if (r < 0 || (owners[i] && !request->all))
            continue;
        templates[shown] = owned_message(&list[i].record, &list[i].info);
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
    template = owned_message(&record, &info);
    return call_reply(call, MESSAGE(msg_commit_response, .template = &template), err);
}
