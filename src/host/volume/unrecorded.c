// SPDX-License-Identifier: Apache-2.0
#include "host/volume/unrecorded.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/random.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "host/codebase/codebase.h"
#include "host/core/host_internal.h"
#include "host/core/recover.h"
#include "host/core/uids.h"
#include "host/machine/guest_socket.h"
#include "host/machine/machine_internal.h"
#include "host/observe/audit_facts.h"
#include "host/observe/event_internal.h"
#include "host/registry/registry.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/volume/named_volume.h"
#include "kernel/cgroup/cgroup.h"
#include "store/store.h"
#include "store/volume/plain.h"
#include "store/volume/volume.h"

enum {
    OWNER_BYTES = SANDBOX_ID_MAX + RUNTIME_ID_MAX + 32,
    FILE_BYTES_MAX = 1 << 20,
};

/* The ids of shared volumes begin with this; those of sandboxes with "sb-". */
static const char shared_prefix[] = "vol";

/* --- machines --------------------------------------------------------------------------------- */

void unrecorded_note_owner(struct host *host, const struct sandbox_info *info, const char *machine)
{
    char owner[OWNER_BYTES];

    if (info)
        (void)snprintf(owner, sizeof(owner), "%s %u %s", info->id, info->uid_slot,
                       info->limits_group);
    /* Without it the machine would be removed with a lost registry; nothing else depends on it. */
    (void)cgroup_set_owner(host->cgroups, machine, info ? owner : NULL);
}

static bool owner_parse(char *owner, struct unrecorded_machine *ret)
{
    char *cursor = owner, *id = strsep(&cursor, " "), *slot = strsep(&cursor, " ");
    uint64_t number = 0;

    if (!slot || !cursor || parse_u64(slot, &number) < 0 || number >= HOST_UID_RANGES)
        return false;
    (void)snprintf(ret->sandbox, sizeof(ret->sandbox), "%s", id);
    (void)snprintf(ret->limits_group, sizeof(ret->limits_group), "%s", cursor);
    ret->uid_slot = (unsigned)number;
    return true;
}

struct machine_search {
    struct cgroup_root *cgroups;
    struct recovery *recovery;
};

static void machine_add(void *context, const char *group)
{
    const struct machine_search *search = context;
    struct recovery *recovery = search->recovery;
    struct unrecorded_machine machine = { .uid_slot = 0 };
    char owner[OWNER_BYTES];

    /* The group of a machine that has ended is swept like any other. */
    if (cgroup_is_empty(search->cgroups, group) == 1 ||
        cgroup_get_owner(search->cgroups, group, owner, sizeof(owner)) < 0 ||
        !owner_parse(owner, &machine))
        return;
    for (size_t i = 0; i < recovery->count; i++)
        if (strcmp(recovery->infos[i].id, machine.sandbox) == 0)
            return;
    (void)snprintf(machine.machine, sizeof(machine.machine), "%s", group);
    recovery->machines =
        xreallocarray(recovery->machines, recovery->machine_count + 1, sizeof(*recovery->machines));
    recovery->machines[recovery->machine_count++] = machine;
}

int unrecorded_find_machines(struct cgroup_root *cgroups, struct recovery *recovery,
                             struct err *err)
{
    struct machine_search search = { cgroups, recovery };
    int r = cgroup_each(cgroups, machine_add, &search);

    return r < 0 ? err_sys(err, r, "list control groups") : 0;
}

/* Ends the machine and releases what the host has reserved for it. */
static void machine_end(struct host *host, struct unrecorded_machine *machine)
{
    if (!machine->machine[0])
        return;
    (void)runtime_bury(host->runtime, machine->machine, machine->limits_group);
    guest_socket_remove(host->guests_fd, machine->machine);
    host_release_slot(host, machine->uid_slot);
    machine->machine[0] = '\0';
}

/* --- volumes ---------------------------------------------------------------------------------- */

struct volume_search {
    struct host *host;
    const struct recovery *recovery;
    struct volume_info *shared; /* recorded shared volumes */
    size_t shared_count;
};

static bool is_recorded(const struct volume_search *search, const char *id)
{
    bool is_found = false;

    for (size_t i = 0; !is_found && i < search->shared_count; i++)
        is_found = strcmp(search->shared[i].id, id) == 0;
    lock_take(&search->host->lock);
    for (const struct sandbox *sandbox = search->host->sandboxes; !is_found && sandbox;
         sandbox = sandbox->next)
        is_found = strcmp(sandbox->info.id, id) == 0;
    lock_release(&search->host->lock);
    return is_found;
}

static const struct unrecorded_machine *machine_of(const struct recovery *recovery, const char *id)
{
    for (size_t i = 0; i < recovery->machine_count; i++)
        if (strcmp(recovery->machines[i].sandbox, id) == 0)
            return &recovery->machines[i];
    return NULL;
}

static void volume_keep(struct host *host, const struct unrecorded_volume *volume)
{
    lock_take(&host->lock);
    host->unrecorded =
        xreallocarray(host->unrecorded, host->unrecorded_count + 1, sizeof(*host->unrecorded));
    host->unrecorded[host->unrecorded_count++] = *volume;
    lock_release(&host->lock);
    host_event(host, EVENT_VOLUME_UNRECORDED,
               json_pack("{s:s, s:b}", "volume", volume->id, "isRunning",
                         volume->machine.machine[0] != '\0'));
}

/* Removes the files of something that was destroyed: the removal was lost with the power. */
static void volume_forget(struct host *host, const struct unrecorded_volume *volume)
{
    if (volume->is_shared)
        (void)plain_destroy(host->store, volume->id);
    else
        (void)volume_purge(host->store, volume->id);
}

static int volume_add(void *context, const char *id)
{
    const struct volume_search *search = context;
    const struct unrecorded_machine *machine = machine_of(search->recovery, id);
    struct unrecorded_volume volume = { .is_shared = false };
    struct volume_summary summary = { .generation = 0 };
    struct err ignored;

    if (strlen(id) >= sizeof(volume.id) || is_recorded(search, id) ||
        strncmp(id, CODEBASE_ID_PREFIX, strlen(CODEBASE_ID_PREFIX)) == 0)
        return 0; /* codebases cannot be adopted; their files stay */
    volume.is_shared = strncmp(id, shared_prefix, strlen(shared_prefix)) == 0;
    /* Of a removal that was interrupted nothing may be left. */
    if (!volume.is_shared && volume_summarize(search->host->store, id, &summary, &ignored) < 0)
        return 0;
    (void)snprintf(volume.id, sizeof(volume.id), "%s", id);
    if (audit_facts_find(recovery_facts(search->host), id).is_destroyed) {
        volume_forget(search->host, &volume);
        return 0;
    }
    if (machine) {
        volume.machine = *machine;
        host_reserve_slot(search->host, machine->uid_slot);
    }
    volume_keep(search->host, &volume);
    return 0;
}

/* Writes the list for `holt doctor`. It can be made again at the next start, so errors do not
 * matter. */
static void list_write(struct host *host)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(FILE_BYTES_MAX);
    size_t count = 0;
    cleanup_free struct unrecorded_volume *list = unrecorded_list(host, &count);

    for (size_t i = 0; i < count; i++)
        (void)buf_printf(&text, "%s\n", list[i].id);
    if (count == 0)
        (void)unlinkat(host->state_fd, UNRECORDED_FILE, 0);
    else
        (void)file_replace_at(host->state_fd, UNRECORDED_FILE, text.data, text.len);
}

int unrecorded_find(struct host *host, const struct recovery *recovery, struct err *err)
{
    cleanup_free struct volume_info *shared = NULL;
    struct volume_search search = { .host = host, .recovery = recovery };
    int r = registry_list_volumes(host->registry, &shared, &search.shared_count, err);

    search.shared = shared;
    if (r == 0)
        r = volume_each(host->store, volume_add, &search, err);
    if (r == 0)
        r = plain_each(host->store, volume_add, &search, err);
    if (r == 0)
        list_write(host);
    return r;
}

struct unrecorded_volume *unrecorded_list(struct host *host, size_t *ret_count)
{
    lock_scope(&host->lock);
    struct unrecorded_volume *list = xcalloc(host->unrecorded_count + 1, sizeof(*list));

    if (host->unrecorded_count > 0)
        memcpy(list, host->unrecorded, host->unrecorded_count * sizeof(*list));
    *ret_count = host->unrecorded_count;
    return list;
}

/* --- adoption --------------------------------------------------------------------------------- */

/* Takes the volume from the list, so that nobody else adopts it. */
static int volume_claim(struct host *host, const char *id, struct unrecorded_volume *ret,
                        struct err *err)
{
    lock_scope(&host->lock);

    for (size_t i = 0; i < host->unrecorded_count; i++) {
        if (strcmp(host->unrecorded[i].id, id) != 0)
            continue;
        *ret = host->unrecorded[i];
        host->unrecorded[i] = host->unrecorded[--host->unrecorded_count];
        return 0;
    }
    return err_set(err, ERR_NOT_FOUND, "no volume '%.64s' without a record", id);
}

static void volume_return(struct host *host, const struct unrecorded_volume *volume)
{
    lock_scope(&host->lock);

    /* Claiming has left room for it. */
    host->unrecorded[host->unrecorded_count++] = *volume;
}

static int shared_adopt(struct host *host, const struct unrecorded_adoption *adoption,
                        struct err *err)
{
    if (!adoption->name)
        return err_set(err, ERR_INVALID, "shared volume '%s' needs a name to be adopted",
                       adoption->volume);
    return named_volume_record(host, adoption->volume, adoption->name, err);
}

static int info_find(struct host *host, const struct unrecorded_adoption *adoption,
                     struct sandbox_info *info, struct err *err)
{
    struct volume_summary summary = { .generation = 0 };
    cleanup_with(audit_facts_done) struct audit_facts_list list = { .items = NULL };
    struct audit_facts facts;
    struct err ignored;
    const char *template, *name;
    int r = volume_summarize(host->store, adoption->volume, &summary, err);

    if (r < 0)
        return r;
    audit_facts_add(&list, adoption->volume);
    (void)audit_facts_read(host->state_fd, &list, &ignored);
    facts = audit_facts_find(&list, adoption->volume);
    template = adoption->template ? adoption->template : facts.template;
    name = adoption->name ? adoption->name : facts.name;
    if (!template[0]) {
        (void)err_set(err, ERR_INVALID, "the audit log does not tell the template of volume '%s'",
                      adoption->volume);
        return err_remedy(err, "name the template that the sandbox was created from");
    }
    if (*name)
        r = sandbox_check_name(name, err);
    if (r == 0)
        r = host_choose_template(host, &caller_root, template, info->template, err);
    if (r < 0)
        return r;
    (void)snprintf(info->id, sizeof(info->id), "%s", adoption->volume);
    (void)snprintf(info->owner, sizeof(info->owner), "%s",
                   facts.owner[0] ? facts.owner : OWNER_ROOT);
    (void)snprintf(info->name, sizeof(info->name), "%s", name);
    (void)snprintf(info->runtime, sizeof(info->runtime), "%s", host->default_runtime->name);
    info->snapshots_max = host->snapshots_max;
    info->generation = facts.generation && facts.generation <= summary.last_generation
                           ? facts.generation
                           : summary.last_generation;
    info->state = SANDBOX_STOPPED;
    return 0;
}

static int sandbox_record_again(struct sandbox *sandbox, struct err *err)
{
    int r = sandbox_open_volume(sandbox, &sandbox->volume, err);

    if (r == 0)
        r = sandbox_record(sandbox, SANDBOX_STOPPED, err);
    return r == 0 ? recover_snapshots(sandbox, err) : r;
}

static int files_adopt(struct host *host, const struct unrecorded_adoption *adoption,
                       struct unrecorded_volume *volume, struct sandbox **ret, struct err *err)
{
    struct sandbox *sandbox = sandbox_new(host);
    int r = info_find(host, adoption, &sandbox->info, err);

    sandbox_charge(sandbox);
    if (r == 0)
        r = host_admit(host, &sandbox->charge, 1, err);
    if (r < 0) {
        sandbox_unref(sandbox);
        return r;
    }
    sandbox->operation = OPERATION_CREATE; /* until it has its volume */
    r = sandbox_enter_table(sandbox, err);
    if (r < 0) {
        host_dismiss(host, &sandbox->charge);
        sandbox_unref(sandbox);
        return r;
    }
    machine_end(host, &volume->machine);
    r = sandbox_record_again(sandbox, err);
    if (r < 0) {
        struct err ignored;

        (void)registry_remove(host->registry, sandbox->info.id, &ignored);
        sandbox_leave_table(sandbox);
        sandbox_unref(sandbox);
        return r;
    }
    sandbox_finish(sandbox, SANDBOX_STOPPED);
    *ret = sandbox;
    return 0;
}

int unrecorded_adopt(struct host *host, const struct unrecorded_adoption *adoption,
                     struct sandbox **ret_sandbox, struct err *err)
{
    struct unrecorded_volume volume = { .is_shared = false };
    struct sandbox *sandbox = NULL;
    int r = host_is_open(host, err);

    if (r == 0)
        r = volume_claim(host, adoption->volume, &volume, err);
    if (r < 0)
        return r;
    r = volume.is_shared ? shared_adopt(host, adoption, err)
                         : files_adopt(host, adoption, &volume, &sandbox, err);
    if (r < 0) {
        volume_return(host, &volume);
        return r;
    }
    list_write(host);
    host_event(host, EVENT_VOLUME_ADOPTED, json_pack("{s:s}", "volume", volume.id));
    *ret_sandbox = sandbox;
    return 0;
}
