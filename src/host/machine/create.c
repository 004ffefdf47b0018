// SPDX-License-Identifier: Apache-2.0
/* Throw-away machines: created for one process, found by their id while it runs. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/machine/pool.h"
#include "host/machine/runtime_choice.h"
#include "host/observe/metrics_internal.h"
#include "host/owner/owner_internal.h"
#include "host/sandbox/network.h"
#include "kernel/cgroup/cgroup.h"
#include "net/policy.h"
#include "store/volume/volume.h"

/* The kernel refuses a higher limit of processes (PID_MAX_LIMIT). A registry or a configuration can
 * have one. */
static uint32_t pids_with_own(uint32_t pids, uint32_t own)
{
    return pids > SANDBOX_PIDS_MAX - own ? SANDBOX_PIDS_MAX : pids + own;
}

int machine_set_limits(struct machine *machine, const struct sandbox_limits *limits,
                       struct err *err)
{
    struct cgroup_limits values;
    int r;

    host_limits(machine->host, limits, &values);
    machine->limit_files = limits->files;
    /* Holt's own processes in the machine do not count against the sandbox's limit. */
    if (values.pids)
        values.pids = pids_with_own(values.pids, runtime_guest_own_processes(&machine->guest) +
                                                     machine->beside_processes);

    r = cgroup_set_limits(machine->host->cgroups, machine->guest.limits_group, &values, err);
    if (r == 0)
        machine_send_size(machine, &values);
    return r;
}

static void machine_enter_table(struct machine *machine)
{
    struct host *host = machine->host;

    lock_take(&host->lock);
    machine->next = host->machines;
    host->machines = machine_ref(machine);
    lock_release(&host->lock);
}

bool machine_leave_table(struct machine *machine)
{
    struct host *host = machine->host;
    struct machine **slot = &host->machines;
    bool was_there;

    lock_take(&host->lock);
    while (*slot && *slot != machine)
        slot = &(*slot)->next;
    was_there = *slot;
    if (was_there)
        *slot = machine->next;
    lock_release(&host->lock);
    return was_there;
}

static int limits_check_most(const struct sandbox_limits *limits, struct err *err)
{
    if (limits->memory_bytes > SANDBOX_MEMORY_MAX)
        return err_set(err, ERR_INVALID, "the memory limit must be at most %llu TiB",
                       SANDBOX_MEMORY_MAX >> 40);
    if (limits->cpu_millis > SANDBOX_CPUS_MAX * 1000)
        return err_set(err, ERR_INVALID, "the CPU limit must be at most %d", SANDBOX_CPUS_MAX);
    if (limits->pids > SANDBOX_PIDS_MAX)
        return err_set(err, ERR_INVALID, "the limit of processes must be at most %d",
                       SANDBOX_PIDS_MAX);
    if (limits->files > SANDBOX_FILES_MAX)
        return err_set(err, ERR_INVALID, "the limit of descriptors must be at most %d",
                       SANDBOX_FILES_MAX);
    return 0;
}

int machine_check_limits(const struct sandbox_limits *limits, struct err *err)
{
    enum { MEMORY_MIN = 4 << 20, CPU_MIN = 10, FILES_MIN = 64 };

    if (limits->memory_bytes && limits->memory_bytes < MEMORY_MIN)
        return err_set(err, ERR_INVALID, "the memory limit must be at least %d MiB",
                       MEMORY_MIN >> 20);
    if (limits->cpu_millis && limits->cpu_millis < CPU_MIN)
        return err_set(err, ERR_INVALID, "the CPU limit must be at least 0.01");
    if (limits->files && limits->files < FILES_MIN)
        return err_set(err, ERR_INVALID, "the limit of descriptors must be at least %d", FILES_MIN);
    return limits_check_most(limits, err);
}

static void host_set_warm_template(struct host *host, const char *template)
{
    lock_take(&host->lock);
    (void)snprintf(host->warm_template, sizeof(host->warm_template), "%s", template);
    lock_release(&host->lock);
}

/* A throw-away machine that is being created. */
struct throwaway {
    const struct machine_spec *spec;
    const struct runtime_ops *ops;
    char template[TEMPLATE_NAME_MAX + 1];
    struct sandbox_limits limits; /* within the ceilings of the owner */
    uint64_t quota_bytes;
    bool needs_quota;
    struct owner_charge charge;
    char *network; /* as sandboxes record it; NULL: none */
};

/* Takes a machine from the pool, or starts one. */
static int machine_obtain(struct host *host, const struct throwaway *throwaway,
                          struct machine **ret, struct err *err)
{
    const char *template = throwaway->template;
    struct machine *machine =
        pool_take(host->pool, throwaway->ops, throwaway->spec->caller->owner, template);
    int r = 0;

    if (!machine)
        r = machine_start_blank(host, throwaway->ops, &machine, err);
    if (r < 0)
        return r;
    assert(machine);
    if (strcmp(machine->template, template) != 0)
        r = machine_set_scratch_root(machine, template, err);
    if (r < 0) {
        machine_destroy(machine);
        machine_unref(machine);
        return r;
    }
    *ret = machine;
    return 0;
}

/* A default that the storage cannot enforce is none. */
static int throwaway_set_quota(struct machine *machine, const struct throwaway *throwaway,
                               struct err *err)
{
    uint64_t bytes = throwaway->quota_bytes;
    struct err ignored;

    if (bytes == 0)
        return 0;
    return throwaway->needs_quota
               ? volume_limit_scratch(machine->volume, bytes, err)
               : ((void)volume_limit_scratch(machine->volume, bytes, &ignored), 0);
}

static int throwaway_activate(struct machine *machine, const struct throwaway *throwaway,
                              struct err *err)
{
    int r = machine_set_limits(machine, &throwaway->limits, err);

    if (r == 0)
        r = throwaway_set_quota(machine, throwaway, err);
    if (r < 0)
        return r;
    machine->creator = *throwaway->spec->caller;
    machine->charge = throwaway->charge;
    machine_activate(machine);
    machine_enter_table(machine);
    return 0;
}

static int machine_create_admitted(struct host *host, const struct throwaway *throwaway,
                                   struct machine **ret, struct err *err)
{
    struct machine *machine = NULL;
    int r = machine_obtain(host, throwaway, &machine, err);

    if (r < 0)
        return r;
    assert(machine);
    r = machine_network_start(machine, throwaway->spec->caller->owner, throwaway->network, err);
    if (r == 0)
        r = throwaway_activate(machine, throwaway, err);
    if (r < 0) {
        machine_destroy(machine);
        machine_unref(machine);
        return r;
    }
    host_set_warm_template(host, throwaway->template);
    *ret = machine;
    return 0;
}

/* Computes the limits within the ceilings of the owner, and what the machine counts for it. */
static int throwaway_fill(struct host *host, struct throwaway *throwaway, struct err *err)
{
    const struct machine_spec *spec = throwaway->spec;
    const char *owner = spec->caller->owner;
    const struct runtime_holder holder = { owner, throwaway->template };
    struct cgroup_limits limits;
    struct ceilings ceilings;
    int r;

    host_get_ceilings(host, owner, &ceilings);
    r = host_choose_runtime(host, &holder, spec->runtime, &throwaway->ops, err);
    if (r == 0)
        r = throwaway->ops->probe(err);
    if (r == 0)
        r = host_choose_quota(host, owner, &ceilings, spec->quota_bytes, &throwaway->quota_bytes,
                              err);
    if (r < 0)
        return r;
    throwaway->needs_quota =
        spec->quota_bytes || ceiling_number(&ceilings, CEILING_DISK) != CEILING_UNLIMITED;
    host_limits(host, &spec->limits, &limits);
    throwaway->limits = (struct sandbox_limits){ limits.memory_bytes, limits.cpu_millis,
                                                 limits.pids, spec->limits.files };
    ceilings_fill_limits(&ceilings, &spec->limits, &throwaway->limits);
    owner_charge_fill(owner, &throwaway->limits, throwaway->quota_bytes, &throwaway->charge);
    return 0;
}

int machine_create(struct host *host, const struct machine_spec *spec, struct machine **ret,
                   struct err *err)
{
    struct throwaway throwaway = { .spec = spec };
    uint64_t began_ns = clock_ns();
    int r = machine_check_limits(&spec->limits, err);

    if (r == 0)
        r = host_choose_template(host, spec->caller, spec->template, throwaway.template, err);
    if (r == 0)
        r = throwaway_fill(host, &throwaway, err);
    if (r == 0)
        r = network_record(host,
                           &(struct network_holder){ spec->caller->owner, throwaway.ops->name,
                                                     throwaway.template },
                           spec->network, &throwaway.network, err);
    if (r == 0 && spec->network && net_layer_reads_https(spec->network)) {
        (void)err_set(err, ERR_UNSUPPORTED, "a run cannot have rules on requests inside https");
        r = err_remedy(err, "use 'holt create' with the rule, then 'holt exec'");
    }
    if (r == 0)
        r = host_admit(host, &throwaway.charge, 1, err);
    if (r == 0) {
        r = machine_create_admitted(host, &throwaway, ret, err);
        if (r < 0)
            host_dismiss(host, &throwaway.charge);
    }
    free(throwaway.network);
    return metrics_note(host->metrics, TIMED_RUN, began_ns, r);
}

static bool caller_sees_it(const struct caller *caller, const struct machine *machine)
{
    const struct caller *creator = &machine->creator;

    return caller_sees(caller, creator->owner, creator->scope, creator->scope_count);
}

int machine_find(struct host *host, const struct caller *caller, const char *id,
                 struct machine **ret, struct err *err)
{
    struct machine *machine;

    lock_take(&host->lock);
    machine = host->machines;
    while (machine && (strcmp(machine->id, id) != 0 || !caller_sees_it(caller, machine)))
        machine = machine->next;
    if (machine)
        (void)machine_ref(machine);
    lock_release(&host->lock);
    if (!machine)
        return err_refuse(err, CAUSE_SESSION_NOT_FOUND, "no sandbox '%.40s'", id);
    *ret = machine;
    return 0;
}

const char *machine_id(const struct machine *machine)
{
    return machine->id;
}
