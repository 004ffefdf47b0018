// SPDX-License-Identifier: Apache-2.0
#include "store/template/template.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/message/messages.h"
#include "api/message/sandbox_ref.h"
#include "api/service.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "builder/build.h"
#include "host/core/host.h"
#include "host/observe/event.h"
#include "host/sandbox/sandbox.h"
#include "http/stream.h"
#include "store/template/settings.h"

enum { PROGRESS_INTERVAL_MS = 200 };

/* An import runs in a thread of its own, as the reply must report progress meanwhile. */
struct import_stream {
    struct stream stream;
    struct host *host;
    char *name;
    char *path;
    struct template_settings settings;
    struct thread thread;

    struct lock lock; /* over everything below */
    struct cond over;
    bool is_over;
    uint64_t bytes;
    uint64_t files;
    int result; /* of template_import, with err or info filled in */
    struct err err;
    struct template_info info;
};

static void import_progress(uint64_t bytes, uint64_t files, void *context)
{
    struct import_stream *import = context;

    lock_take(&import->lock);
    import->bytes = bytes;
    import->files = files;
    lock_release(&import->lock);
}

static void import_main(void *context)
{
    struct import_stream *import = context;
    const struct template_source source = {
        .name = import->name,
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
        host_event(import->host, EVENT_TEMPLATE_IMPORTED,
                   json_pack("{s:s}", "template", info.name));
    lock_scope(&import->lock);
    import->result = r;
    import->err = err;
    import->info = info;
    import->is_over = true;
    cond_signal(&import->over);
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
        r = message_add_take(out, json_pack("{s:o}", "template", template_json(&import->info)));
    } else {
        r = message_add_take(out,
                             json_pack("{s:{s:o, s:o}}", "progress", "bytes",
                                       json_u64(import->bytes), "files", json_u64(import->files)));
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
    free(import->name);
    free(import->path);
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

static struct import_stream *import_new(struct host *host, const char *name, const char *path)
{
    struct import_stream *import = xcalloc(1, sizeof(*import));

    import->stream.ops = &import_ops;
    import->host = host;
    import->name = xstrdup(name);
    import->path = xstrdup(path);
    lock_init(&import->lock, LOCK_TEMPLATE_IMPORT);
    cond_init(&import->over);
    return import;
}

static int name_get(const json_t *request, const char **ret, struct err *err)
{
    const char *name = "";
    int r = json_get_text(request, "name", &name, err);

    if (r < 0)
        return r;
    if (!is_name(name))
        return err_set(err, ERR_INVALID, "'%.100s' is not a valid template name", name);
    *ret = name;
    return 0;
}

static int path_get(const json_t *request, const char **ret, struct err *err)
{
    const char *path = "";
    int r = json_get_text(request, "path", &path, err);

    if (r < 0)
        return r;
    if (*path != '/' || strlen(path) >= PATH_MAX)
        return err_set(err, ERR_INVALID, "field 'path' must be an absolute path");
    *ret = path;
    return 0;
}

static int settings_get(const json_t *request, struct template_settings *ret, struct err *err)
{
    const json_t *settings = NULL;
    int r = json_get_object(request, "settings", &settings, err);

    return r < 0 || !settings ? r : template_settings_parse(settings, ret, err);
}

int template_service_import(const struct call *call, const json_t *request, struct stream **ret,
                            struct err *err)
{
    static const char *const fields[] = { "name", "path", "settings", NULL };
    cleanup_with(template_settings_done) struct template_settings settings = { .object = NULL };
    struct import_stream *import;
    const char *name = NULL, *path = NULL;
    int r;

    if (!call->is_local)
        return err_set(err, ERR_DENIED,
                       "import is only allowed over the unix socket, because it "
                       "reads the daemon's own files");
    r = json_only_fields(request, fields, err);
    if (r == 0)
        r = name_get(request, &name, err);
    if (r == 0)
        r = path_get(request, &path, err);
    if (r == 0)
        r = settings_get(request, &settings, err);
    if (r < 0)
        return r;
    import = import_new(call->host, name, path);
    import->settings = settings;
    settings.object = NULL;
    r = thread_start(&import->thread, "holt-import", import_main, import);
    if (r < 0) {
        import_free(import);
        return err_sys(err, r, "start the import");
    }
    *ret = &import->stream;
    return 0;
}

/* Returns what the template belongs to, for the caller to free; NULL: nothing. */
static int owner_find(struct host *host, const char *name, char **ret, struct err *err)
{
    if (!build_is_step(name))
        return host_get_template_owner(host, name, ret, err);
    *ret = xstrdup("the cache of builds");
    return 0;
}

static int list_add(struct host *host, json_t *list, const struct template_info *info,
                    bool wants_all, struct err *err)
{
    cleanup_free char *owner = NULL;
    json_t *template;
    int r = owner_find(host, info->name, &owner, err);

    if (r < 0 || (owner && !wants_all))
        return r;
    template = template_json(info);
    if (owner)
        (void)json_object_set_new(template, "owner", json_text(owner));
    (void)json_array_append_new(list, template);
    return 0;
}

int template_service_list(const struct call *call, const json_t *request, json_t **ret_reply,
                          struct err *err)
{
    static const char *const fields[] = { "all", NULL };
    cleanup_free struct template_info *infos = NULL;
    cleanup_json json_t *list = json_array();
    bool wants_all = false;
    size_t count = 0;
    int r = json_only_fields(request, fields, err);

    if (r == 0)
        r = json_get_bool(request, "all", &wants_all, err);
    if (r == 0)
        r = template_list(host_store(call->host), &infos, &count, err);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = list_add(call->host, list, &infos[i], wants_all, err);
    if (r < 0)
        return r;
    *ret_reply = json_pack("{s:O}", "templates", list);
    return *ret_reply ? 0 : err_sys(err, -ENOMEM, "list templates");
}

int template_service_remove(const struct call *call, const json_t *request, json_t **ret_reply,
                            struct err *err)
{
    static const char *const fields[] = { "name", NULL };
    const char *name = NULL;
    int r = json_only_fields(request, fields, err);

    (void)ret_reply;
    if (r == 0)
        r = name_get(request, &name, err);
    if (r < 0)
        return r;
    return host_remove_template(call->host, name, err);
}

int template_service_commit(const struct call *call, const json_t *request, json_t **ret_reply,
                            struct err *err)
{
    static const char *const fields[] = { "sandboxId", "name", NULL };
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    struct template_info info = { 0 };
    const char *name = NULL;
    int r = json_only_fields(request, fields, err);

    if (r == 0)
        r = name_get(request, &name, err);
    if (r == 0)
        r = sandbox_ref_find(call, request, &sandbox, err);
    if (r == 0)
        r = sandbox_commit(sandbox, name, &info, err);
    if (r < 0)
        return r;
    *ret_reply = json_pack("{s:o}", "template", template_json(&info));
    return *ret_reply ? 0 : err_sys(err, -ENOMEM, "write the reply");
}
