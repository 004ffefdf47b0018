// SPDX-License-Identifier: Apache-2.0
/* Tiers of calls: a process can ask for a stronger runtime than its sandbox has. It then runs in
 * the second machine of the sandbox (host/machine/beside.h), which starts with the first such
 * process and ends with the sandbox's own machine, or when that gets another root. */
#include <stdio.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/log.h"
#include "host/core/host_internal.h"
#include "host/machine/beside.h"
#include "host/machine/guest_socket.h"
#include "host/machine/machine_internal.h"
#include "host/machine/runtime_choice.h"
#include "host/process/cell.h"
#include "host/process/processes.h"
#include "host/process/table.h"
#include "host/sandbox/network.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/secret/grant.h"
#include "kernel/cgroup/cgroup.h"
#include "runtime/runtime.h"

/* Finds the runtime of a tier and returns whether it is the sandbox's own. Never takes another one
 * instead. */
static int tier_find(struct sandbox *sandbox, const char *tier, const struct runtime_ops **ret,
                     bool *ret_is_own, struct err *err)
{
    const struct sandbox_info *info = &sandbox->info;
    const struct runtime_holder holder = { info->owner, info->template };
    const struct runtime_ops *own = NULL;
    int r = host_find_runtime(sandbox->host, info->runtime, &own, err);

    if (r == 0)
        r = runtime_find(tier, ret, err);
    if (r < 0 || !own || !*ret)
        return r;
    *ret_is_own = *ret == own;
    if (*ret_is_own)
        return 0;
    if ((*ret)->strength <= own->strength) {
        (void)err_set(err, ERR_INVALID,
                      "tier '%s' is not stronger than '%s', the runtime of sandbox '%s'",
                      (*ret)->name, own->name, info->name[0] ? info->name : info->id);
        return err_remedy(err, "leave the tier out to use the sandbox's own runtime");
    }
    r = host_check_runtime(sandbox->host, &holder, tier, err);
    return r == 0 ? (*ret)->probe(err) : r;
}

int sandbox_choose_tier(struct sandbox *sandbox, const char *asked, const char *least,
                        const char **ret, struct err *err)
{
    const struct runtime_ops *own = NULL, *wanted = NULL, *weakest = NULL;
    int r = host_find_runtime(sandbox->host, sandbox->info.runtime, &own, err);

    if (r == 0)
        r = runtime_find(least, &weakest, err);
    if (r == 0 && asked)
        r = runtime_find(asked, &wanted, err);
    if (r < 0 || !own || !weakest)
        return r;
    if (wanted && wanted->strength < weakest->strength) {
        (void)err_set(err, ERR_DENIED,
                      "tier '%s' is weaker than '%s', the weakest for this tool on this host",
                      wanted->name, weakest->name);
        return err_remedy(err, "use tier '%s', or change tools.tier.bash in holt.conf",
                          weakest->name);
    }
    if (!wanted)
        wanted = own->strength < weakest->strength ? weakest : own;
    *ret = wanted == own ? NULL : wanted->name;
    return 0;
}

static int second_prepare(struct sandbox *sandbox, struct machine *machine, struct err *err)
{
    int r = sandbox_enter(sandbox, machine, NULL, err);

    if (r < 0)
        return r;
    fault_point("tier.rooted");
    machine->env = secret_env_make(sandbox->info.secrets);
    machine->limit_files = sandbox->info.limits.files;
    machine_set_template(machine, sandbox->info.template);
    machine_activate(machine);
    cell_prepare(machine);
    return machine_listen(machine, err);
}

static int second_prepare_with_network(struct sandbox *sandbox, struct machine *machine,
                                       struct err *err)
{
    struct network_start network;
    struct err ignored;
    int r = sandbox_network_begin(sandbox, machine, &network, err), ended;

    if (r == 0)
        r = machine_wait(machine, MACHINE_BLANK, err);
    if (r == 0)
        r = second_prepare(sandbox, machine, err);
    ended = sandbox_network_end(sandbox, &network, r < 0 ? &ignored : err);
    return r < 0 ? r : ended;
}

/* Makes room for Holt's own processes in the second machine (0: there is none any more). */
static int second_count_processes(struct sandbox *sandbox, unsigned count, struct err *err)
{
    sandbox->machine->beside_processes = count;
    return machine_set_limits(sandbox->machine, &sandbox->info.limits, err);
}

static void second_discard(struct machine *machine)
{
    machine_destroy(machine);
    (void)machine_wait_reaped(machine); /* the next one has the same id */
    machine_unref(machine);
}

/* The caller runs OPERATION_TIER. */
static int second_start(struct sandbox *sandbox, const struct runtime_ops *ops, struct err *err)
{
    struct machine *machine = NULL;
    struct err ignored;
    int r = second_count_processes(sandbox, ops->own_processes, err);

    if (r == 0)
        r = machine_start_beside(sandbox->machine, ops, &machine, err);
    if (r < 0 || !machine) {
        (void)second_count_processes(sandbox, 0, &ignored);
        return r;
    }
    fault_point("tier.started");
    lock_take(&machine->lock); /* the guest may already be sending frames */
    machine->process_table = process_table_ref(sandbox->process_table);
    lock_release(&machine->lock);
    r = second_prepare_with_network(sandbox, machine, err);
    if (r < 0) {
        second_discard(machine);
        (void)second_count_processes(sandbox, 0, &ignored);
        return r;
    }
    fault_point("tier.listening");
    lock_take(&sandbox->lock);
    sandbox->second = machine;
    lock_release(&sandbox->lock);
    return 0;
}

static bool machine_is_lost(struct machine *machine)
{
    lock_scope(&machine->lock);

    return machine->state >= MACHINE_FAILED;
}

/* Starts the second machine unless it runs. */
static int second_ensure(struct sandbox *sandbox, const struct runtime_ops *ops, struct err *err)
{
    enum sandbox_state state = SANDBOX_STOPPED;
    int r = sandbox_begin(sandbox, OPERATION_TIER, &state, err);

    if (r < 0)
        return r;
    if (sandbox->second && machine_is_lost(sandbox->second))
        (void)sandbox_end_tier(sandbox, KILLER_NONE);
    if (!sandbox->second)
        r = second_start(sandbox, ops, err);
    sandbox_finish(sandbox, state);
    return r < 0 ? err_wrap(err, "start tier '%s'", ops->name) : 0;
}

/* Replaces the hold of the sandbox's own machine by one of the second, if that runs. */
static bool hold_move(struct sandbox *sandbox, struct machine **machine)
{
    lock_scope(&sandbox->lock);

    if (!sandbox->second || machine_is_lost(sandbox->second))
        return false;
    machine_unref(*machine);
    *machine = machine_ref(sandbox->second);
    return true;
}

int sandbox_hold_tier(struct sandbox *sandbox, const char *tier, struct machine **ret,
                      struct err *err)
{
    const struct runtime_ops *ops = NULL;
    struct machine *machine = NULL;
    bool is_own = false;
    int r = tier_find(sandbox, tier, &ops, &is_own, err);

    for (int tries = 0; r == 0 && tries < 3; tries++) {
        r = sandbox_hold_machine(sandbox, &machine, err);
        if (r == 0 && (is_own || hold_move(sandbox, &machine))) {
            *ret = machine;
            return 0;
        }
        if (r == 0)
            sandbox_release_machine(sandbox, TAKE_PTR(machine));
        if (r == 0)
            r = second_ensure(sandbox, ops, err);
    }
    return r < 0 ? r : err_set(err, ERR_INTERNAL, "tier '%s' ends as soon as it starts", tier);
}

bool sandbox_end_tier(struct sandbox *sandbox, enum killer killer)
{
    struct machine *machine;
    bool is_reaped;
    struct err ignored;

    lock_take(&sandbox->lock);
    machine = TAKE_PTR(sandbox->second);
    lock_release(&sandbox->lock);
    if (!machine)
        return true;
    if (killer != KILLER_NONE)
        process_set_killer_all(machine, killer);
    machine_destroy(machine);
    is_reaped = machine_wait_reaped(machine);
    machine_unref(machine);
    if (sandbox->machine)
        (void)second_count_processes(sandbox, 0, &ignored);
    return is_reaped;
}

void sandbox_set_killer(struct sandbox *sandbox, enum killer killer)
{
    if (sandbox->machine)
        process_set_killer_all(sandbox->machine, killer);
    if (sandbox->second)
        process_set_killer_all(sandbox->second, killer);
}

void sandbox_adopt_tier(struct sandbox *sandbox)
{
    struct host *host = sandbox->host;
    const struct sandbox_info *info = &sandbox->info;
    char id[RUNTIME_ID_MAX];
    const struct machine_adoption known = {
        .beside = sandbox->machine,
        .files = info->limits.files,
        .ops = &runtime_gvisor,
        .id = id,
        .limits_group = info->limits_group,
        .process_table = sandbox->process_table,
    };
    struct err err = { 0 };

    machine_beside_id(info->machine, id);
    if (cgroup_is_empty(host->cgroups, id) == 0 &&
        machine_adopt(host, &known, &sandbox->second, &err) == 0) {
        sandbox->machine->beside_processes = runtime_gvisor.own_processes;
        sandbox->second->env = secret_env_make(info->secrets);
        machine_set_template(sandbox->second, info->template);
        if (sandbox_network_start(sandbox, sandbox->second, &err) < 0)
            log_error("tier '%s' of sandbox '%s' reaches nothing: %s", runtime_gvisor.name,
                      info->id, err.msg);
        return;
    }
    (void)runtime_bury(host->runtime, id, "");
    guest_socket_remove(host->guests_fd, id);
}
