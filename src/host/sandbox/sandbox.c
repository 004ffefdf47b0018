// SPDX-License-Identifier: Apache-2.0
#include "host/sandbox/sandbox.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "host/core/extension.h"
#include "host/core/host_internal.h"
#include "host/observe/audit.h"
#include "host/process/table.h"
#include "host/registry/registry.h"
#include "host/sandbox/expiry.h"
#include "host/sandbox/mount.h"
#include "host/sandbox/name.h"
#include "host/sandbox/network.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/shell/state.h"
#include "store/volume/volume.h"

static void sandbox_make_id(char *id)
{
    (void)snprintf(id, SANDBOX_ID_MAX, SANDBOX_ID_PREFIX "%016" PRIx64, random_u64());
}

struct sandbox *sandbox_new(struct host *host)
{
    struct sandbox *sandbox = xcalloc(1, sizeof(*sandbox));

    sandbox->host = host;
    atomic_init(&sandbox->refs, 1);
    sandbox_make_id(sandbox->info.id);
    sandbox->info.created_ms = sandbox->info.last_active_ms = clock_wall_ms();
    lock_init(&sandbox->lock, LOCK_SANDBOX);
    cond_init(&sandbox->changed);
    return sandbox;
}

struct sandbox *sandbox_ref(struct sandbox *sandbox)
{
    atomic_fetch_add(&sandbox->refs, 1);
    return sandbox;
}

void sandbox_unref(struct sandbox *sandbox)
{
    if (!sandbox || atomic_fetch_sub(&sandbox->refs, 1) != 1)
        return;
    shells_free(sandbox);
    if (sandbox->extension_data)
        sandbox->host->extension->sandbox_free(sandbox->extension_data);
    volume_close(sandbox->volume);
    template_close(sandbox->template_pin);
    process_table_unref(sandbox->process_table);
    sandbox_info_done(&sandbox->info);
    free(sandbox->learning);
    cond_destroy(&sandbox->changed);
    lock_destroy(&sandbox->lock);
    free(sandbox);
}

struct host *sandbox_host(const struct sandbox *sandbox)
{
    return sandbox->host;
}

const char *sandbox_id(const struct sandbox *sandbox)
{
    return sandbox->info.id;
}

const char *sandbox_owner(const struct sandbox *sandbox)
{
    return sandbox->info.owner;
}

uint32_t sandbox_generation(struct sandbox *sandbox)
{
    uint32_t generation;

    lock_take(&sandbox->lock);
    generation = sandbox->info.generation;
    lock_release(&sandbox->lock);
    return generation;
}

void *sandbox_extension_data(struct sandbox *sandbox)
{
    void *data;

    lock_take(&sandbox->lock);
    if (!sandbox->extension_data)
        sandbox->extension_data = sandbox->host->extension->sandbox_new(sandbox);
    data = sandbox->extension_data;
    lock_release(&sandbox->lock);
    return data;
}

void sandbox_get_info(struct sandbox *sandbox, bool wants_space, struct sandbox_info *ret)
{
    struct volume *volume = wants_space ? sandbox_pin(sandbox) : NULL;
    struct err ignored;
    uint64_t used = 0;

    if (volume) {
        (void)volume_usage(volume, &used, &ignored);
        sandbox_unpin(sandbox);
    }
    lock_take(&sandbox->lock);
    sandbox_info_copy(&sandbox->info, ret);
    (void)sandbox_times_correct(&sandbox->times, ret);
    lock_release(&sandbox->lock);
    ret->space_used = used;
    ret->transfer_done = atomic_load(&sandbox->transfer_done);
    ret->transfer_total = atomic_load(&sandbox->transfer_total);
}

struct volume *sandbox_pin(struct sandbox *sandbox)
{
    struct volume *volume = NULL;

    lock_take(&sandbox->lock);
    if (sandbox->info.state != SANDBOX_CREATING && sandbox->info.state != SANDBOX_DESTROYING)
        volume = sandbox->volume;
    if (volume)
        sandbox->pins++;
    lock_release(&sandbox->lock);
    return volume;
}

void sandbox_unpin(struct sandbox *sandbox)
{
    lock_take(&sandbox->lock);
    sandbox->pins--;
    cond_broadcast(&sandbox->changed);
    lock_release(&sandbox->lock);
}

int sandbox_lacks_codebase(const struct sandbox *sandbox, struct err *err)
{
    (void)err_set(err, ERR_INVALID, "sandbox '%s' has no codebase", sandbox->info.id);
    return err_remedy(err, "create a sandbox with --codebase");
}

int sandbox_attach_codebase(const struct sandbox *sandbox, struct volume *volume, struct err *err)
{
    const struct sandbox_info *info = &sandbox->info;
    struct volume_codebase codebase = { .version = info->codebase_version };

    if (!info->codebase[0])
        return 0;
    memcpy(codebase.id, info->codebase, sizeof(codebase.id));
    memcpy(codebase.path, info->codebase_path, sizeof(codebase.path));
    return volume_set_codebase(volume, &codebase, err);
}

int sandbox_open_volume(struct sandbox *sandbox, struct volume **ret, struct err *err)
{
    struct store *store = sandbox->host->store;
    const struct sandbox_info *info = &sandbox->info;
    struct template *template;
    int r = template_open(store, info->template, &template, err);

    if (r < 0)
        return r;
    r = volume_open(store, info->id, template, info->generation, ret, err);
    if (r < 0) {
        template_close(template);
        return r;
    }
    r = sandbox_attach_codebase(sandbox, *ret, err);
    if (r < 0)
        volume_close(TAKE_PTR(*ret));
    return r;
}

int sandbox_record(struct sandbox *sandbox, enum sandbox_state state, struct err *err)
{
    return sandbox_record_all(&sandbox, 1, state, err);
}

/* Records the sandboxes with registry_put_all or registry_put_later. */
static int record_with(int (*put)(struct registry *registry, const struct sandbox_info *infos,
                                  size_t count, struct err *err),
                       struct sandbox *const *list, size_t count, enum sandbox_state state,
                       struct err *err)
{
    cleanup_free struct sandbox_info *infos = xcalloc(count, sizeof(*infos));
    int r;

    for (size_t i = 0; i < count; i++) {
        lock_take(&list[i]->lock);
        sandbox_info_copy(&list[i]->info, &infos[i]);
        lock_release(&list[i]->lock);
        if (infos[i].state != SANDBOX_DESTROYING)
            infos[i].state = state;
        if (state == SANDBOX_ACTIVE)
            infos[i].reason[0] = '\0';
    }
    r = put(list[0]->host->registry, infos, count, err);
    for (size_t i = 0; i < count; i++)
        sandbox_info_done(&infos[i]);
    return r;
}

int sandbox_record_all(struct sandbox *const *list, size_t count, enum sandbox_state state,
                       struct err *err)
{
    return record_with(registry_put_all, list, count, state, err);
}

int sandbox_record_later(struct sandbox *const *list, size_t count, enum sandbox_state state,
                         struct err *err)
{
    return record_with(registry_put_later, list, count, state, err);
}

void sandbox_attach(struct sandbox *sandbox)
{
    lock_take(&sandbox->lock);
    sandbox->attached++;
    lock_release(&sandbox->lock);
}

static void process_leave(struct sandbox *sandbox, struct process *process)
{
    struct err ignored;

    if (host_is_open(sandbox->host, &ignored) == 0)
        process_kill(process, KILLER_CLIENT);
    process_abandon(process);
}

void sandbox_detach(struct sandbox *sandbox, struct process *process)
{
    if (process)
        process_leave(sandbox, process);
    lock_take(&sandbox->lock);
    sandbox->attached--;
    sandbox_touch(sandbox);
    lock_release(&sandbox->lock);
    expiry_wake(sandbox->host->expiry);
}

bool sandbox_has_egress(struct sandbox *sandbox)
{
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    struct err ignored;

    return sandbox_network_policy(sandbox, &policy, &ignored) == 0 &&
           net_policy_mode(&policy) != NET_NONE;
}
