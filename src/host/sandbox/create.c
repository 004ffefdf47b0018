// SPDX-License-Identifier: Apache-2.0
/* Creates sandboxes. The registry entry comes first, so that a restarted daemon can remove a
 * partial sandbox. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/xalloc.h"
#include "host/backup/remote_store.h"
#include "host/codebase/codebase.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/machine/runtime_choice.h"
#include "host/observe/event_internal.h"
#include "host/observe/metrics_internal.h"
#include "host/owner/owner_internal.h"
#include "host/registry/registry.h"
#include "host/sandbox/network.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/sandbox/secret.h"
#include "host/view/permission.h"
#include "kernel/cgroup/cgroup.h"
#include "store/store.h"
#include "store/template/template.h"
#include "store/volume/volume.h"

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

int sandbox_check_name(const char *name, struct err *err)
{
    size_t len = strlen(name);

    if (len < 1 || len > SANDBOX_NAME_MAX || !is_name_char(name[0]) || strstr(name, ".."))
        len = 0;
    for (size_t i = 1; i < len; i++)
        if (!is_name_char(name[i]) && !strchr("._-", name[i]))
            len = 0;
    if (len == 0)
        return err_set(
            err, ERR_INVALID,
            "invalid sandbox name '%.40s': use 1 to %d letters, digits, '.', '_' or '-', "
            "starting with a letter or digit, without '..'",
            name, SANDBOX_NAME_MAX);
    return 0;
}

static int spec_check(struct host *host, const struct sandbox_spec *spec, struct err *err)
{
    int r = host_is_open(host, err);

    if (r == 0 && spec->name)
        r = sandbox_check_name(spec->name, err);
    if (r == 0)
        r = machine_check_limits(&spec->limits, err);
    if (r == 0 && spec->quota_bytes && !store_has_quota(host->store)) {
        (void)err_set(err, ERR_UNSUPPORTED, "the '%s' storage backend does not support quotas",
                      store_backend(host->store));
        r = err_remedy(err, "request no quota, or set the storage to btrfs or zfs in holt.conf(5)");
    }
    if (r == 0 && !remote_store_is_set(host) &&
        ((spec->ttl_ms && spec->expire_action == ACTION_DEEP_PAUSE) ||
         (spec->idle_timeout_ms && spec->idle_action == ACTION_DEEP_PAUSE))) {
        (void)err_set(err, ERR_UNSUPPORTED, "this host has no object storage for deep pauses");
        r = err_remedy(err, "set remote.url in holt.conf(5), or choose another action");
    }
    return r == 0 ? host_check_space(host, err) : r;
}

static int info_fill_times(struct sandbox_info *info, const struct sandbox_spec *spec,
                           const struct ceilings *ceilings, struct err *err)
{
    uint64_t ttl_ms = 0;
    int r = ceilings_limit_ttl(ceilings, spec->caller->owner, spec->ttl_ms, &ttl_ms, err);

    info->expires_ms = ttl_ms ? info->created_ms + ttl_ms : 0;
    info->expire_action = spec->expire_action;
    info->idle_timeout_ms = spec->idle_timeout_ms;
    info->idle_action = spec->idle_action;
    return r;
}

/* Fills in the limits and the times, within the ceilings of the owner. */
static int info_fill_limits(struct sandbox *sandbox, const struct sandbox_spec *spec,
                            const struct ceilings *ceilings, struct err *err)
{
    struct host *host = sandbox->host;
    struct sandbox_info *info = &sandbox->info;
    const char *owner = spec->caller->owner;
    struct cgroup_limits limits;
    int r;

    host_limits(host, &spec->limits, &limits);
    info->limits =
        (struct sandbox_limits){ limits.memory_bytes, limits.cpu_millis, limits.pids,
                                 spec->limits.files ? spec->limits.files : host->limit_files };
    ceilings_fill_limits(ceilings, &spec->limits, &info->limits);
    r = host_choose_quota(host, owner, ceilings, spec->quota_bytes, &info->quota_bytes, err);
    return r == 0 ? info_fill_times(info, spec, ceilings, err) : r;
}

/* Adds the labels of the caller's scope to those that were asked for. */
static int info_fill_labels(struct sandbox_info *info, const struct sandbox_spec *spec,
                            struct err *err)
{
    const struct caller *caller = spec->caller;
    int r = sandbox_labels_set(info, caller->scope, caller->scope_count, err);

    if (r == 0)
        r = sandbox_labels_set(info, spec->labels, spec->label_count, err);
    return r == 0 ? caller_check_labels(caller, info->labels, info->label_count, err) : r;
}

static int info_fill_runtime(struct sandbox *sandbox, const struct sandbox_spec *spec,
                             struct err *err)
{
    struct sandbox_info *info = &sandbox->info;
    const struct runtime_holder holder = { spec->caller->owner, info->template };
    const struct runtime_ops *ops;
    int r = host_choose_runtime(sandbox->host, &holder, spec->runtime, &ops, err);

    if (r == 0)
        r = ops->probe(err);
    if (r == 0)
        (void)snprintf(info->runtime, sizeof(info->runtime), "%s", ops->name);
    return r;
}

static int info_fill(struct sandbox *sandbox, const struct sandbox_spec *spec, struct err *err)
{
    struct host *host = sandbox->host;
    struct sandbox_info *info = &sandbox->info;
    struct ceilings ceilings;
    int r;

    host_get_ceilings(host, spec->caller->owner, &ceilings);
    r = info_fill_limits(sandbox, spec, &ceilings, err);
    if (r == 0 && spec->stored_template)
        (void)snprintf(info->template, sizeof(info->template), "%s", spec->stored_template);
    else if (r == 0)
        r = host_choose_template(host, spec->caller, spec->template, info->template, err);
    if (r == 0)
        r = info_fill_runtime(sandbox, spec, err);
    if (r < 0)
        return r;
    (void)snprintf(info->owner, sizeof(info->owner), "%s", spec->caller->owner);
    (void)snprintf(info->name, sizeof(info->name), "%s", spec->name ? spec->name : "");
    info->snapshots_max = spec->snapshots_max ? spec->snapshots_max : host->snapshots_max;
    info->generation = 1;
    if (spec->key) {
        (void)snprintf(info->request_key, sizeof(info->request_key), "%s", spec->key);
        (void)snprintf(info->request_digest, sizeof(info->request_digest), "%s", spec->digest);
    }
    info->metadata = spec->metadata ? xstrdup(spec->metadata) : NULL;
    r = network_record(host, &(struct network_holder){ info->owner, info->runtime, info->template },
                       spec->network, &info->network, err);
    if (r == 0)
        r = sandbox_secrets_fill(host, spec, info, err);
    if (r < 0)
        return r;
    if (spec->mount_count > 0) {
        info->mounts = xcalloc(spec->mount_count, sizeof(*info->mounts));
        memcpy(info->mounts, spec->mounts, spec->mount_count * sizeof(*info->mounts));
        info->mount_count = spec->mount_count;
    }
    r = codebase_assign(host, spec, info, err);
    if (r == 0)
        r = permissions_assign(&spec->permissions, info, err);
    return r == 0 ? info_fill_labels(info, spec, err) : r;
}

void sandbox_charge(struct sandbox *sandbox)
{
    const struct sandbox_info *info = &sandbox->info;

    owner_charge_fill(info->owner, &info->limits, info->quota_bytes, &sandbox->charge);
}

int sandbox_admit(struct sandbox *sandbox, struct err *err)
{
    int r;

    sandbox->operation = OPERATION_CREATE;
    r = sandbox_enter_table(sandbox, err);
    if (r < 0) {
        host_dismiss(sandbox->host, &sandbox->charge);
        return r;
    }
    r = sandbox_record_later(&sandbox, 1, SANDBOX_CREATING, err);
    if (r < 0)
        sandbox_leave_table(sandbox);
    return r;
}

int sandbox_admit_flush(struct host *host, struct err *err)
{
    int r = registry_sync(host->registry, err);

    fault_point("create.recorded");
    return r;
}

void sandbox_undo_create(struct sandbox *sandbox)
{
    struct err ignored;

    /* Otherwise its processes still use the files, and the next start removes both. */
    if (sandbox_unboot(sandbox, NULL)) {
        if (sandbox->volume) {
            (void)volume_destroy(TAKE_PTR(sandbox->volume));
            store_flush(
                sandbox->host->store); /* or it is there without a row after a power failure */
        }
        (void)registry_remove(sandbox->host->registry, sandbox->info.id, &ignored);
    }
    sandbox_leave_table(sandbox);
}

/* Starts the machine of a sandbox that has a volume, and records the sandbox as active. */
static int sandbox_boot_first(struct sandbox *sandbox, struct err *err)
{
    int r = sandbox_boot(sandbox, err);

    if (r < 0)
        return r;
    fault_point("create.booted");
    /* The audit log is flushed before the reply: with its line, recovery keeps the sandbox even if
     * this record is lost. */
    r = sandbox_record_later(&sandbox, 1, SANDBOX_ACTIVE, err);
    fault_point("create.done");
    return r;
}

int sandbox_make_volume(struct sandbox *sandbox, struct err *err)
{
    struct store *store = sandbox->host->store;
    const struct sandbox_info *info = &sandbox->info;
    struct template *template;
    int r = template_open(store, info->template, &template, err);

    if (r < 0)
        return r;
    r = volume_create(store, info->id, template, info->quota_bytes, &sandbox->volume, err);
    if (r < 0)
        template_close(template);
    else
        r = sandbox_attach_codebase(sandbox, sandbox->volume, err);
    fault_point("create.volume");
    return r;
}

/* If another thread destroyed the sandbox during the creation, that thread cleans up. */
int sandbox_finish_create(struct sandbox *sandbox, struct err *err)
{
    bool is_destroyed;

    lock_take(&sandbox->lock);
    is_destroyed = sandbox->info.state == SANDBOX_DESTROYING;
    lock_release(&sandbox->lock);
    sandbox_finish(sandbox, SANDBOX_ACTIVE);
    if (is_destroyed)
        return err_refuse(err, CAUSE_SESSION_DESTROYING,
                          "sandbox '%s' was destroyed while it was being created",
                          sandbox->info.id);
    return 0;
}

static int sandbox_build(struct sandbox *sandbox, const struct sandbox_spec *spec, struct err *err)
{
    int r;

    sandbox_charge(sandbox);
    r = host_admit(sandbox->host, &sandbox->charge, 1, err);
    if (r == 0)
        r = sandbox_admit(sandbox, err);
    if (r < 0)
        return r;
    r = sandbox_admit_flush(sandbox->host, err);
    if (r == 0)
        r = sandbox_make_volume(sandbox, err);
    if (r == 0 && spec->fill)
        r = spec->fill(sandbox, spec->fill_context, err);
    if (r == 0)
        r = sandbox_boot_first(sandbox, err);
    if (r < 0) {
        sandbox_undo_create(sandbox);
        return r;
    }
    sandbox_event(
        sandbox, EVENT_SANDBOX_CREATED,
        json_pack("{s:s, s:s}", "template", sandbox->info.template, "name", sandbox->info.name));
    return sandbox_finish_create(sandbox, err);
}

int sandbox_create(struct host *host, const struct sandbox_spec *spec, struct sandbox **ret,
                   struct err *err)
{
    uint64_t began_ns = clock_ns();
    struct sandbox *sandbox;
    int r = spec_check(host, spec, err);

    if (r < 0)
        return metrics_note(host->metrics, TIMED_CREATE, began_ns, r);
    sandbox = sandbox_new(host);
    if (spec->id)
        (void)snprintf(sandbox->info.id, sizeof(sandbox->info.id), "%s", spec->id);
    r = info_fill(sandbox, spec, err);
    if (r == 0)
        r = sandbox_build(sandbox, spec, err);
    if (r < 0)
        sandbox_unref(sandbox);
    else
        *ret = sandbox;
    return metrics_note(host->metrics, TIMED_CREATE, began_ns, r);
}

/* Returns -ENOENT if no sandbox has the key. */
static int sandbox_join_key(struct host *host, const struct sandbox_spec *spec,
                            struct sandbox **ret, struct err *err)
{
    struct sandbox *sandbox;

    while ((sandbox = sandbox_find_by_key(host, spec->caller->owner, spec->key)) &&
           !sandbox_wait_created(sandbox))
        sandbox_unref(sandbox);
    if (!sandbox)
        return -ENOENT;
    if (!sandbox_is_seen(sandbox, spec->caller)) {
        sandbox_unref(sandbox);
        return err_set(err, ERR_EXISTS,
                       "the idempotency key was used for a sandbox outside of the token's scope");
    }
    if (strcmp(sandbox->info.request_digest, spec->digest) != 0) {
        (void)err_set(err, ERR_INVALID,
                      "the idempotency key was used for sandbox '%s' with a different request",
                      sandbox->info.id);
        sandbox_unref(sandbox);
        return err_remedy(err, "use a different key for a different request");
    }
    *ret = sandbox;
    return 0;
}

/* Looks for the key again after SessionExists: another request with the same key may have been
 * faster. */
int sandbox_create_once(struct host *host, const struct sandbox_spec *spec, struct sandbox **ret,
                        bool *ret_is_joined, struct err *err)
{
    int r = -ENOENT;

    *ret_is_joined = false;
    for (int tries = 0; tries < 2; tries++) {
        r = spec->key ? sandbox_join_key(host, spec, ret, err) : -ENOENT;
        *ret_is_joined = r == 0;
        if (r != -ENOENT)
            return r;
        r = sandbox_create(host, spec, ret, err);
        if (r == 0 || !spec->key || err->cause != CAUSE_SESSION_EXISTS)
            return r;
    }
    return r;
}
