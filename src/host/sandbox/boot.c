// SPDX-License-Identifier: Apache-2.0
/* Starts and ends the machine of a sandbox. */
#include <errno.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/machine/pool.h"
#include "host/machine/runtime_choice.h"
#include "host/process/cell.h"
#include "host/process/service.h"
#include "host/process/table.h"
#include "host/sandbox/network.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/secret/grant.h"
#include "host/secret/secret.h"
#include "host/view/engine.h"
#include "host/view/mask.h"
#include "host/view/permission.h"
#include "host/volume/unrecorded.h"
#include "store/store.h"
#include "store/volume/volume.h"

static void machine_discard(struct machine *machine)
{
    unrecorded_note_owner(machine->host, NULL, machine->id); /* the row may be gone before it */
    machine_destroy(machine);
    machine_unref(machine);
}

/* A warm machine fits any root, unless the storage cannot map owners and needs certain uids. */
static int machine_obtain(struct sandbox *sandbox, struct machine **ret, struct err *err)
{
    struct host *host = sandbox->host;
    uid_t shared_uid = store_shared_uid(host->store);
    const struct runtime_holder holder = { sandbox->info.owner, sandbox->info.template };
    const struct runtime_ops *ops;
    int r = host_find_runtime(host, sandbox->info.runtime, &ops, err);

    if (r == 0) /* the rules may have changed since the sandbox was created */
        r = host_check_runtime(host, &holder, sandbox->info.runtime, err);
    if (r < 0)
        return r;
    if (shared_uid != 0)
        return machine_start_shared(host, ops, shared_uid, ret, err);
    *ret = pool_take(host->pool, ops, sandbox->info.owner, sandbox->info.template);
    return *ret ? 0 : machine_start_blank(host, ops, ret, err);
}

int sandbox_enter(struct sandbox *sandbox, struct machine *machine, struct volume_mounts *ret_old,
                  struct err *err)
{
    cleanup_with(mask_done) struct mask mask = { .fd = -EBADF, .lock_fd = -EBADF };
    struct machine_files files = {
        .volume = sandbox->volume,
        .hostname = sandbox->info.id,
        .mounts = sandbox->info.mounts,
        .mount_count = sandbox->info.mount_count,
    };
    cleanup_with(permissions_done) struct permissions permissions = { .rules = NULL };
    cleanup_with(buf_done) struct buf rules = BUF_INIT(VIEW_TEXT_MAX);
    int r = permissions_read(sandbox->info.permissions, &permissions, err);

    /* A second machine gets the mount that the first one has, whatever enforces the rules there. */
    if (r == 0 && permissions.rules && !machine->beside)
        r = engine_prepare(sandbox, &permissions, &mask, err);
    files.mask_fd = mask.fd;
    if (r == 0 && engine_is_fuse(&permissions)) {
        r = view_rules_format(permissions.rules, &rules);
        files.rules = rules.data ? rules.data : "";
        files.rules_generation = view_rules_generation(permissions.rules);
    }
    if (r == 0 && sandbox->info.secrets)
        r = secrets_authority(sandbox->host->secrets, true, &files.authority, err);
    return r < 0 ? r : machine_enter(machine, &files, ret_old, err);
}

static int machine_prepare(struct sandbox *sandbox, struct machine *machine, struct err *err)
{
    int r = machine_set_limits(machine, &sandbox->info.limits, err);

    if (r == 0)
        r = sandbox_enter(sandbox, machine, NULL, err);
    if (r < 0)
        return r;
    fault_point("boot.rooted");
    machine_drop_volume(machine);
    machine->env = secret_env_make(sandbox->info.secrets);
    machine_set_template(machine, sandbox->info.template);
    machine_activate(machine);
    cell_prepare(machine);
    return machine_listen(machine, err);
}

/* Prepares the machine and its network at the same time; both are there when this returns. */
static int machine_prepare_with_network(struct sandbox *sandbox, struct machine *machine,
                                        struct err *err)
{
    struct network_start network;
    struct err ignored;
    int r = sandbox_network_begin(sandbox, machine, &network, err), ended;

    if (r == 0)
        r = machine_prepare(sandbox, machine, err);
    ended = sandbox_network_end(sandbox, &network, r < 0 ? &ignored : err);
    return r < 0 ? r : ended;
}

int sandbox_boot(struct sandbox *sandbox, struct err *err)
{
    struct machine *machine = NULL;
    int r = machine_obtain(sandbox, &machine, err);

    if (r < 0)
        return r;
    fault_point("boot.started");
    lock_take(&machine->lock); /* the guest may already be sending frames */
    machine->process_table = process_table_ref(sandbox->process_table);
    lock_release(&machine->lock);
    r = machine_prepare_with_network(sandbox, machine, err);
    if (r < 0) {
        machine_discard(machine);
        return r;
    }
    fault_point("boot.listening");
    lock_take(&sandbox->lock);
    sandbox->machine = machine;
    sandbox->info.uid_slot = machine->uid_slot;
    (void)snprintf(sandbox->info.machine, sizeof(sandbox->info.machine), "%s", machine->id);
    (void)snprintf(sandbox->info.limits_group, sizeof(sandbox->info.limits_group), "%s",
                   machine->guest.limits_group);
    unrecorded_note_owner(sandbox->host, &sandbox->info, machine->id);
    lock_release(&sandbox->lock);
    return 0;
}

bool sandbox_unboot(struct sandbox *sandbox, struct volume_mounts *ret_root)
{
    struct volume_mounts root = { .count = 0 };
    struct machine *machine;
    bool is_reaped, is_second_reaped = sandbox_end_tier(sandbox, KILLER_NONE);

    lock_take(&sandbox->lock);
    machine = TAKE_PTR(sandbox->machine);
    sandbox->info.machine[0] = '\0';
    lock_release(&sandbox->lock);
    if (!machine)
        return is_second_reaped;
    if (sandbox->volume)
        machine_hold_root(machine, sandbox->volume, &root);
    machine_destroy(machine);
    services_close(sandbox);
    is_reaped = machine_wait_reaped(machine) && is_second_reaped;
    if (ret_root)
        *ret_root = root;
    else if (is_reaped)
        volume_mounts_done(&root);
    machine_unref(machine);
    return is_reaped;
}
