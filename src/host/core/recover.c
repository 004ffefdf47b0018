// SPDX-License-Identifier: Apache-2.0
/* Takes over the sandboxes that an earlier daemon process has left, by recorded state:
 *
 *   creating         the client never got a reply: removed, unless the audit log or a snapshot
 *                    proves that it did: then the registry has lost its last changes
 *   active           adopted if its holt-init answers, otherwise stopped
 *   paused           like active, and its processes are frozen (again)
 *   rolling-back     the new files were recorded: the sandbox boots on them
 *   destroying       removed
 *   stopped, failed  unchanged
 *   deep-paused      unchanged; files that are still here are leftovers */
#include "host/core/recover.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "host/core/extension.h"
#include "host/core/host_internal.h"
#include "host/machine/guest_socket.h"
#include "host/machine/machine_internal.h"
#include "host/observe/audit_facts.h"
#include "host/observe/event_internal.h"
#include "host/process/record_internal.h"
#include "host/process/restart.h"
#include "host/process/service.h"
#include "host/process/table.h"
#include "host/registry/registry.h"
#include "host/sandbox/network.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/secret/grant.h"
#include "host/shell/state.h"
#include "host/view/machine_view.h"
#include "host/volume/unrecorded.h"
#include "kernel/cgroup/cgroup.h"
#include "store/store.h"
#include "store/volume/plain.h"
#include "store/volume/volume.h"

static bool info_is_running(const struct sandbox_info *info)
{
    return info->machine[0] && (info->state == SANDBOX_ACTIVE || info->state == SANDBOX_PAUSED);
}

/* Returns whether a group is the one of this name, or a socket that of its second machine. */
static bool is_of(const char *group, const char *name)
{
    size_t len = strlen(name);

    return strncmp(group, name, len) == 0 && (group[len] == '\0' || group[len] == '/');
}

bool recover_keeps(const char *group, void *context)
{
    const struct recovery *recovery = context;

    for (size_t i = 0; i < recovery->count; i++) {
        const struct sandbox_info *info = &recovery->infos[i];

        if (info_is_running(info) &&
            (is_of(group, info->machine) || strcmp(info->limits_group, group) == 0))
            return true;
    }
    for (size_t i = 0; i < recovery->machine_count; i++)
        if (is_of(group, recovery->machines[i].machine) ||
            strcmp(recovery->machines[i].limits_group, group) == 0)
            return true;
    return false;
}

/* Records a state that recovery has forced on the sandbox, and the reason. */
static void recover_to_state(struct sandbox *sandbox, enum sandbox_state state, const char *why)
{
    struct err err = { 0 };

    sandbox->info.state = state;
    sandbox->info.machine[0] = '\0';
    (void)snprintf(sandbox->info.reason, sizeof(sandbox->info.reason), "%.200s", why);
    (void)sandbox_record(sandbox, state, &err);
    sandbox_event(sandbox, EVENT_SANDBOX_RECOVERED,
                  json_pack("{s:s, s:o}", "state", sandbox_state_name(state), "reason",
                            json_text(sandbox->info.reason)));
    if (state == SANDBOX_FAILED)
        sandbox_event(sandbox, EVENT_SANDBOX_FAILED,
                      json_pack("{s:o}", "reason", json_text(sandbox->info.reason)));
}

static int facts_want(void *context, const char *id)
{
    audit_facts_add(context, id);
    return 0;
}

const struct audit_facts_list *recovery_facts(struct host *host)
{
    struct audit_facts_list *facts = host->facts;
    struct err ignored;

    if (facts)
        return facts;
    facts = host->facts = xcalloc(1, sizeof(*facts));
    for (const struct sandbox *sandbox = host->sandboxes; sandbox; sandbox = sandbox->next)
        audit_facts_add(facts, sandbox->info.id);
    for (size_t i = 0; i < host->recovery->count; i++)
        audit_facts_add(facts, host->recovery->infos[i].id);
    (void)volume_each(host->store, facts_want, facts, &ignored);
    (void)plain_each(host->store, facts_want, facts, &ignored);
    (void)audit_facts_read(host->state_fd, facts, &ignored);
    return facts;
}

static struct audit_facts facts_of(const struct sandbox *sandbox)
{
    return audit_facts_find(recovery_facts(sandbox->host), sandbox->info.id);
}

/* Returns whether a sandbox that is recorded as being created was complete: the record of its first
 * state does not wait for the disk, and the registry may have lost more. */
static bool is_complete(const struct sandbox *sandbox)
{
    struct volume_summary summary = { .wanted = SNAPSHOT_UNFILLED };
    struct audit_facts facts = facts_of(sandbox);
    struct err ignored;

    if (facts.is_created)
        return !facts.is_destroyed;
    return volume_summarize(sandbox->host->store, sandbox->info.id, &summary, &ignored) == 0 &&
           summary.snapshots > 0 && !summary.has_wanted;
}

/* Makes the recorded generation that of the files, if the registry has lost a rollback: the audit
 * log has it, or the recorded tree is gone and a newer one is there. A newer tree alone proves
 * nothing, since an interrupted rollback leaves one. Returns whether the generation has changed. */
static bool generation_correct(struct sandbox *sandbox)
{
    struct sandbox_info *info = &sandbox->info;
    struct volume_summary summary = { .generation = info->generation };
    struct audit_facts facts;
    struct err ignored;

    if (volume_summarize(sandbox->host->store, info->id, &summary, &ignored) < 0 ||
        summary.last_generation <= info->generation)
        return false;
    facts = facts_of(sandbox);
    if (facts.generation > info->generation && facts.generation <= summary.last_generation)
        info->generation = facts.generation;
    else if (!summary.has_generation)
        info->generation = summary.last_generation;
    else
        return false;
    return true;
}

static bool snapshots_have(const struct snapshot_info *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return true;
    return false;
}

static bool names_have(char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Handles a snapshot that is in storage but not in the registry: the daemon died before it could
 * record it. Temporary snapshots are removed. Returns whether the snapshot now belongs to the
 * sandbox. */
static bool snapshot_add_missing(struct sandbox *sandbox, const char *name)
{
    struct snapshot_info snapshot = { .kind = SNAPSHOT_NAMED, .created_ms = clock_wall_ms() };
    struct err err = { 0 };

    if (strncmp(name, SNAPSHOT_OWN_PREFIX, strlen(SNAPSHOT_OWN_PREFIX)) == 0) {
        (void)volume_remove_snapshot(sandbox->volume, name, &err);
        return false;
    }
    (void)snprintf(snapshot.name, sizeof(snapshot.name), "%s", name);
    memcpy(snapshot.parent, sandbox->info.base, sizeof(snapshot.parent));
    if (snapshot_turn_parse(name, sandbox->host->snapshots_prefix, &snapshot.turn) ||
        snapshot_turn_parse(name, SNAPSHOT_TURN_PREFIX, &snapshot.turn))
        snapshot.kind = SNAPSHOT_TURN;
    if (snapshot.turn > sandbox->info.turns)
        sandbox->info.turns = snapshot.turn;
    memcpy(sandbox->info.base, snapshot.name, sizeof(snapshot.name));
    (void)registry_put_snapshot(sandbox->host->registry, &sandbox->info, &snapshot, &err);
    fault_point("recover.snapshot");
    return true;
}

/* Handles a snapshot that is in the registry but not in storage: the daemon died while removing it.
 */
static void snapshot_drop_missing(struct sandbox *sandbox, const char *name)
{
    char parent[SNAPSHOT_NAME_MAX + 1];
    struct err ignored;

    if (registry_remove_snapshot(sandbox->host->registry, sandbox->info.id, name, parent,
                                 &ignored) == 0 &&
        strcmp(sandbox->info.base, name) == 0)
        memcpy(sandbox->info.base, parent, sizeof(parent));
}

static void free_names(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

int recover_snapshots(struct sandbox *sandbox, struct err *err)
{
    struct registry *registry = sandbox->host->registry;
    cleanup_free struct snapshot_info *known = NULL;
    size_t known_count = 0, count = 0;
    uint32_t kept = 0;
    char **names = NULL;
    int r = registry_list_snapshots(registry, sandbox->info.id, &known, &known_count, err);

    if (r == 0)
        r = volume_list_snapshots(sandbox->volume, &names, &count, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        kept +=
            snapshots_have(known, known_count, names[i]) || snapshot_add_missing(sandbox, names[i]);
    for (size_t i = 0; i < known_count; i++)
        if (!names_have(names, count, known[i].name))
            snapshot_drop_missing(sandbox, known[i].name);
    sandbox->info.snapshot_count = kept;
    free_names(names, count);
    return 0;
}

static int sandbox_adopt(struct sandbox *sandbox, struct err *err)
{
    struct sandbox_info *info = &sandbox->info;
    struct machine_adoption known = {
        .files = sandbox->info.limits.files,
        .id = info->machine,
        .limits_group = info->limits_group,
        .uid_slot = info->uid_slot,
        .process_table = sandbox->process_table,
    };
    int r = host_find_runtime(sandbox->host, info->runtime, &known.ops, err);

    if (r == 0)
        r = machine_adopt(sandbox->host, &known, &sandbox->machine, err);
    if (r < 0) {
        (void)runtime_bury(sandbox->host->runtime, info->machine, info->limits_group);
        guest_socket_remove(sandbox->host->guests_fd, info->machine);
        return r;
    }
    r = sandbox_view_adopt(sandbox, err);
    if (r < 0)
        return r;
    sandbox->machine->env = secret_env_make(info->secrets);
    machine_set_template(sandbox->machine, info->template);
    if (sandbox_network_start(sandbox, sandbox->machine, err) < 0)
        log_error("sandbox '%s' reaches nothing: %s", info->id, err->msg);
    sandbox_adopt_tier(sandbox);
    return sandbox_freeze(sandbox, info->state == SANDBOX_PAUSED, err);
}

static void recover_running(struct sandbox *sandbox)
{
    char why[SANDBOX_REASON_MAX];
    struct err err = { 0 };

    if (sandbox_adopt(sandbox, &err) == 0) {
        fault_point("recover.adopted");
        sandbox_event(sandbox, EVENT_SANDBOX_ADOPTED, NULL);
        return;
    }
    (void)sandbox_unboot(sandbox, NULL);
    (void)snprintf(why, sizeof(why), "did not survive the restart of the daemon: %.180s", err.msg);
    recover_to_state(sandbox, SANDBOX_STOPPED, why);
}

static void rollback_finish(struct sandbox *sandbox)
{
    bool was_running = sandbox->info.machine[0];
    struct err err = { 0 };

    if (was_running && sandbox_boot(sandbox, &err) < 0) {
        recover_to_state(sandbox, SANDBOX_STOPPED, err.msg);
        return;
    }
    fault_point("recover.rebooted");
    shells_restore_snapshot(sandbox, sandbox->info.base);
    sandbox->info.state = was_running ? SANDBOX_ACTIVE : SANDBOX_STOPPED;
    (void)sandbox_record(sandbox, sandbox->info.state, &err);
    sandbox_event(sandbox, EVENT_SANDBOX_ROLLED_BACK,
                  json_pack("{s:s, s:I, s:b}", "snapshot", sandbox->info.base, "generation",
                            (json_int_t)sandbox->info.generation, "recovered", true));
}

/* Opens the volume. One without snapshots that is missing was new when the machine lost power: it
 * had nothing that was written to disk, so it is made again from its template. A fork is never
 * missing in that way. */
static int volume_recover(struct sandbox *sandbox, bool *ret_is_new, struct err *err)
{
    const struct sandbox_info *info = &sandbox->info;
    int r = sandbox_open_volume(sandbox, &sandbox->volume, err);
    struct err ignored;

    *ret_is_new = r < 0 && err->kind == ERR_NOT_FOUND && info->turns == 0 &&
                  info->base[0] == '\0' && info->generation == 1 && !facts_of(sandbox).is_fork;
    if (!*ret_is_new || sandbox_make_volume(sandbox, &ignored) < 0)
        return r;
    *err = (struct err){ 0 };
    return 0;
}

static void recover_volume(struct sandbox *sandbox)
{
    struct err err = { 0 };
    bool has_moved = generation_correct(sandbox), is_new;
    int r = volume_recover(sandbox, &is_new, &err);

    if (r == 0) {
        (void)volume_tidy(sandbox->volume);
        fault_point("recover.tidied");
        r = recover_snapshots(sandbox, &err);
    }
    if (r < 0) {
        (void)runtime_bury(sandbox->host->runtime, sandbox->info.machine,
                           sandbox->info.limits_group);
        recover_to_state(sandbox, SANDBOX_FAILED, err.msg);
        return;
    }
    if (is_new || has_moved) {
        (void)runtime_bury(sandbox->host->runtime, sandbox->info.machine,
                           sandbox->info.limits_group);
        recover_to_state(sandbox, SANDBOX_STOPPED,
                         is_new ? "its files were lost with the power before anything was written "
                                  "to disk; they are those of the template again"
                                : "the registry had lost its last changes, among them a rollback");
        return;
    }
    if (info_is_running(&sandbox->info))
        recover_running(sandbox);
}

/* Keeps a sandbox whose creation was complete, although the registry does not know it. */
static void recover_created(struct sandbox *sandbox)
{
    sandbox->info.machine[0] = '\0';
    sandbox->info.state = SANDBOX_STOPPED;
    recover_volume(sandbox);
    if (sandbox->info.state == SANDBOX_STOPPED && !sandbox->info.reason[0])
        recover_to_state(sandbox, SANDBOX_STOPPED,
                         "the registry had lost that it was created; its files are there");
}

/* Starts the services that were waiting for a restart. */
static void revive_services(struct sandbox *sandbox)
{
    size_t count;
    cleanup_free struct record **list = process_table_list(sandbox->process_table, &count);

    for (size_t i = 0; i < count; i++) {
        if (!record_is_over(list[i]) && !list[i]->is_adopted &&
            list[i]->spec->restart != RESTART_NO) {
            list[i]->is_adopted = true;
            process_resume_restart(sandbox->machine, list[i]);
        }
        record_unref(list[i]);
    }
}

/* Ends the records of processes that no longer run. The state of the sandbox is all that tells how
 * they ended. */
static void recover_processes(struct sandbox *sandbox)
{
    struct process_end end = { .outcome = OUTCOME_LOST, .exit_code = PROCESS_EXIT_HOLT };

    if (sandbox->info.state == SANDBOX_ROLLING_BACK) {
        end = (struct process_end){ .outcome = OUTCOME_KILLED,
                                    .killer = KILLER_ROLLBACK,
                                    .exit_code = 128 + SIGKILL,
                                    .signal = SIGKILL };
        (void)snprintf(end.reason, sizeof(end.reason), "the sandbox was rolled back");
    } else {
        (void)snprintf(end.reason, sizeof(end.reason), "it ended while the daemon was not running");
    }
    if (sandbox->machine)
        revive_services(sandbox);
    process_table_end_unadopted(sandbox->process_table, &end);
    if (sandbox->machine)
        services_recover(sandbox);
}

/* Removes a sandbox whose creation or removal was interrupted. */
static void remove_unfinished(struct sandbox *sandbox)
{
    int r = volume_purge(sandbox->host->store, sandbox->info.id);
    struct err err = { 0 };

    if (r < 0) {
        (void)err_sys(&err, r, "remove the files of sandbox '%s'", sandbox->info.id);
        recover_to_state(sandbox, SANDBOX_FAILED, err.msg);
        return;
    }
    process_table_purge(sandbox->process_table);
    if (sandbox->host->extension)
        sandbox->host->extension->sandbox_remove(sandbox);
    fault_point("recover.emptied");
    shells_remove(sandbox);
    sandbox_event(sandbox, EVENT_SANDBOX_DESTROYED, json_pack("{s:b}", "recovered", true));
    (void)registry_remove(sandbox->host->registry, sandbox->info.id, &err);
    fault_point("recover.forgotten");
    sandbox_leave_table(sandbox);
}

/* The archive has the files. A pause did not get to remove the local ones, or a resume was bringing
 * them back. */
static void recover_deep_paused(struct sandbox *sandbox)
{
    struct store *store = sandbox->host->store;
    struct err err = { 0 };
    int r = volume_purge(store, sandbox->info.id);

    if (r < 0)
        log_error("the files of deep-paused sandbox '%s' cannot be removed: %s", sandbox->info.id,
                  strerror(-r));
    fault_point("recover.deep-paused");
    if (template_open(store, sandbox->info.template, &sandbox->template_pin, &err) < 0)
        log_error("sandbox '%s' cannot be resumed: %s", sandbox->info.id, err.msg);
}

static void sandbox_recover(struct host *host, struct sandbox_info *info)
{
    struct sandbox *sandbox = sandbox_new(host);
    bool is_wanted = info->state != SANDBOX_CREATING && info->state != SANDBOX_DESTROYING;
    bool is_creating = info->state == SANDBOX_CREATING;
    struct err err = { 0 };

    sandbox->info = *info;
    *info = (struct sandbox_info){ .labels = NULL };
    sandbox->info.last_active_ms = clock_wall_ms();
    sandbox_charge(sandbox);
    host_count_in(host, &sandbox->charge);
    if (sandbox_enter_table(sandbox, &err) < 0) {
        host_dismiss(host, &sandbox->charge);
    } else if (is_wanted || (is_creating && is_complete(sandbox))) {
        process_table_load(sandbox->process_table);
        if (sandbox->info.state == SANDBOX_DEEP_PAUSED)
            recover_deep_paused(sandbox);
        else if (is_wanted)
            recover_volume(sandbox);
        else
            recover_created(sandbox);
        recover_processes(sandbox);
        shells_load(sandbox);
    } else {
        remove_unfinished(sandbox);
    }
    sandbox_unref(sandbox);
}

int recovery_open(struct registry *registry, struct recovery *ret, struct err *err)
{
    return registry_list(registry, &ret->infos, &ret->count, err);
}

/* Boots the rolled-back sandboxes last: a new machine may get any uid range that looks free, so all
 * adopted machines must have claimed theirs first. */
void recovery_run(struct recovery *recovery, struct host *host)
{
    host->recovery = recovery;
    for (size_t i = 0; i < recovery->count; i++)
        sandbox_recover(host, &recovery->infos[i]);
    for (struct sandbox *sandbox = host->sandboxes; sandbox; sandbox = sandbox->next)
        if (sandbox->info.state == SANDBOX_ROLLING_BACK)
            rollback_finish(sandbox);
}

void recovery_finish(struct host *host)
{
    if (host->facts)
        audit_facts_done(host->facts);
    free(host->facts);
    host->facts = NULL;
    host->recovery = NULL;
}

void recovery_done(struct recovery *recovery)
{
    for (size_t i = 0; i < recovery->count; i++)
        sandbox_info_done(&recovery->infos[i]);
    free(recovery->infos);
    free(recovery->machines);
    *recovery = (struct recovery){ .infos = NULL };
}
