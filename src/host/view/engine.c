// SPDX-License-Identifier: Apache-2.0
#include "host/view/engine.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/view/mask.h"
#include "host/view/permission.h"
#include "runtime/runtime.h"
#include "store/volume/volume.h"
#include "view/rules.h"

bool engine_is_fuse(const struct permissions *permissions)
{
    return permissions->rules && strcmp(permissions->engine, ENGINE_KERNEL) != 0;
}

static void engine_set(struct permissions *permissions, const char *engine, const char *reason)
{
    (void)snprintf(permissions->engine, sizeof(permissions->engine), "%s", engine);
    (void)snprintf(permissions->reason, sizeof(permissions->reason), "%s", reason);
    permissions->mask[0] = '\0';
}

int engine_use_fuse(struct permissions *permissions, const char *reason, struct err *err)
{
    engine_set(permissions, ENGINE_FUSE, reason);
    if (strcmp(permissions->view, ENGINE_KERNEL) != 0)
        return 0;
    (void)err_set(err, ERR_INVALID, "the kernel engine cannot enforce the permissions: %.150s",
                  permissions->reason);
    return err_remedy(err, "leave the engine out, or ask for the one called fuse");
}

/* An overlay cannot tell one name that may be written from another in the same directory, and the
 * kernel itself watches and checks access where a process may read. */
static int fuse_for_rule(struct permissions *permissions, enum view_level level, int rule,
                         struct err *err)
{
    char text[VIEW_RULE_TEXT_SIZE], reason[PERMISSION_REASON_MAX];

    view_rule_format(view_rules_at(permissions->rules, (size_t)rule), text);
    (void)snprintf(reason, sizeof(reason), "rule '%.100s' %s", text,
                   level == VIEW_WRITE ? "lets some paths be written and not others"
                                       : "shows paths that cannot be read");
    return engine_use_fuse(permissions, reason, err);
}

int engine_choose(struct permissions *permissions, const char *runtime, uint32_t version,
                  struct err *err)
{
    const struct runtime_ops *ops;
    int rules[VIEW_LEVELS], r = runtime_find(runtime, &ops, err);
    const unsigned levels = view_levels(permissions->rules, rules);

    if (r < 0)
        return r;
    if (strcmp(permissions->view, ENGINE_FUSE) == 0)
        return engine_use_fuse(permissions, "it was asked for", err);
    if (ops->has_cells)
        return engine_use_fuse(permissions, "programs do not open files themselves in this runtime",
                               err);
    if (levels == VIEW_HAS_WRITE) {
        engine_set(permissions, ENGINE_KERNEL, "all paths can be written");
        return 0;
    }
    if (levels & VIEW_HAS_WRITE)
        return fuse_for_rule(permissions, VIEW_WRITE, rules[VIEW_WRITE], err);
    if (levels & VIEW_HAS_VIEW)
        return fuse_for_rule(permissions, VIEW_VIEW, rules[VIEW_VIEW], err);
    engine_set(permissions, ENGINE_KERNEL, "no path can be written");
    r = mask_name(version, permissions->rules, permissions->mask);
    return r < 0 ? err_sys(err, r, "name the mask of a codebase") : 0;
}

static int mask_prepare(struct sandbox *sandbox, struct permissions *permissions, struct mask *mask,
                        struct err *err)
{
    uint32_t version = 0;
    bool is_untouched = false;
    int r = volume_look_at_layer(sandbox->volume, &version, &is_untouched, err);

    if (r < 0)
        return r;
    if (!is_untouched)
        return engine_use_fuse(permissions, "the sandbox has changes of its own", err);
    r = mask_open(sandbox->host, sandbox->info.codebase, version, permissions->rules, mask, err);
    if (r < 0) {
        log_warn("sandbox '%s': %s", sandbox->info.id, err->msg);
        return engine_use_fuse(permissions, err->msg, err);
    }
    if (mask->fd < 0)
        return engine_use_fuse(permissions, mask->refusal, err);
    (void)snprintf(permissions->mask, sizeof(permissions->mask), "%s", mask->name);
    return 0;
}

int engine_prepare(struct sandbox *sandbox, struct permissions *permissions, struct mask *mask,
                   struct err *err)
{
    int r = engine_choose(permissions, sandbox->info.runtime, sandbox->info.codebase_version, err);

    if (r == 0 && permissions->mask[0])
        r = mask_prepare(sandbox, permissions, mask, err);
    return r < 0 ? r : sandbox_record_permissions(sandbox, permissions, err);
}
