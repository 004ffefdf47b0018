// SPDX-License-Identifier: Apache-2.0
#include "host/view/machine_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/observe/event.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/view/engine.h"
#include "host/view/permission.h"
#include "host/view/view.h"
#include "store/volume/volume.h"

/* A rollback has the views of two trees at once, so the id has the generation of its tree. */
static void view_id(char ret[VIEW_ID_MAX + 1], const char *sandbox, uint32_t generation)
{
    (void)snprintf(ret, VIEW_ID_MAX + 1, "%.36s+%" PRIu32, sandbox, generation);
}

/* Finds the sandbox of a view and takes a reference; NULL if it is gone. */
static struct sandbox *sandbox_of_view(struct host *host, const char *id)
{
    const char *end = strrchr(id, '+');
    const size_t len = end ? (size_t)(end - id) : 0;

    lock_scope(&host->lock);
    for (struct sandbox *sandbox = host->sandboxes; sandbox; sandbox = sandbox->next)
        if (strlen(sandbox->info.id) == len && memcmp(sandbox->info.id, id, len) == 0)
            return sandbox_ref(sandbox);
    return NULL;
}

static void view_denied(void *context, const char *id, const json_t *denials, uint64_t count)
{
    struct sandbox *sandbox = sandbox_of_view(context, id);

    if (!sandbox)
        return;
    sandbox_event(sandbox, EVENT_PERMISSION_DENIED,
                  json_pack("{s:I, s:o}", "count", (json_int_t)count, "paths",
                            sandbox_name_denials(sandbox, denials, count)));
    sandbox_unref(sandbox);
}

static void view_died(void *context, const char *id, const char *reason)
{
    struct sandbox *sandbox = sandbox_of_view(context, id);

    if (!sandbox)
        return;
    log_error("the file server of the codebase of sandbox '%s' is gone: %s; nothing in the "
              "codebase can be read until the sandbox is stopped and started",
              sandbox->info.id, reason);
    sandbox_event(sandbox, EVENT_CODEBASE_UNAVAILABLE, json_pack("{s:s}", "reason", reason));
    sandbox_unref(sandbox);
}

int host_start_views(struct host *host, struct err *err)
{
    const struct view_events events = { .context = host, .denied = view_denied, .died = view_died };

    return views_start(host->guests_fd, &events, &host->views, err);
}

void host_stop_views(struct host *host)
{
    views_stop(TAKE_PTR(host->views));
}

int machine_view_insert(struct machine *machine, const struct machine_files *files,
                        struct volume_mounts *mounts, struct view **ret, struct err *err)
{
    const size_t last = mounts->count - 1;
    char id[VIEW_ID_MAX + 1];
    int mount_fd = -EBADF, r;

    if (!files->rules || !mounts->has_codebase)
        return 0;
    view_id(id, files->hostname, volume_generation(files->volume));
    r = view_start(machine->host->views,
                   &(struct view_start){ .id = id,
                                         .mount_fd = mounts->fds[last],
                                         .rules = files->rules,
                                         .generation = files->rules_generation,
                                         .allows_setuid = mounts->allows_setuid },
                   &mount_fd, ret, err);
    if (r < 0)
        return err_wrap(err, "serve the codebase");
    (void)close(mounts->fds[last]);
    mounts->fds[last] = mount_fd;
    return 0;
}

int sandbox_view_adopt(struct sandbox *sandbox, struct err *err)
{
    cleanup_with(permissions_done) struct permissions permissions = { .rules = NULL };
    cleanup_with(buf_done) struct buf text = BUF_INIT(VIEW_TEXT_MAX);
    char id[VIEW_ID_MAX + 1];
    int r = permissions_read(sandbox->info.permissions, &permissions, err);

    if (r < 0 || !engine_is_fuse(&permissions) || !sandbox->info.codebase[0])
        return r;
    r = view_rules_format(permissions.rules, &text);
    if (r < 0)
        return err_sys(err, r, "write the rules of sandbox '%s'", sandbox->info.id);
    view_id(id, sandbox->info.id, sandbox->info.generation);
    return view_adopt(sandbox->host->views, id, text.data ? text.data : "",
                      view_rules_generation(permissions.rules), &sandbox->machine->view, err);
}

int sandbox_view_set_rules(struct sandbox *sandbox, const struct permissions *permissions,
                           size_t *ret_open, struct err *err)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(VIEW_TEXT_MAX);
    struct view *view = sandbox->machine ? sandbox->machine->view : NULL;
    int r;

    *ret_open = 0;
    if (!view)
        return 0;
    r = view_rules_format(permissions->rules, &text);
    if (r < 0)
        return err_sys(err, r, "write the rules of sandbox '%s'", sandbox->info.id);
    return view_set_rules(view, text.data ? text.data : "",
                          view_rules_generation(permissions->rules), ret_open, err);
}
