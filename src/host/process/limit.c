// SPDX-License-Identifier: Apache-2.0
/* Resource limits of a single process. */
#include "base/cleanup.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/process/process_internal.h"
#include "kernel/cgroup/cgroup.h"

static struct cgroup_child process_cgroup(const struct process *process)
{
    const struct machine *machine = process->machine;

    return (struct cgroup_child){ .name = machine->id,
                                  .limits_group = machine->guest.limits_group,
                                  .child = process->id };
}

/* Waits until the process is in its cgroup or has ended. Returns whether it is to be limited. */
static bool process_mark_limited(struct process *process)
{
    struct machine *machine = process->machine;
    bool is_there;

    lock_take(&machine->lock);
    while (!process->is_over && !process->is_started)
        cond_wait(&machine->changed, &machine->lock);
    is_there = !process->is_over;
    process->is_limited = process->is_limited || is_there;
    lock_release(&machine->lock);
    return is_there;
}

int process_limit(struct process *process, uint64_t memory_bytes, uint32_t cpu_millis,
                  struct err *err)
{
    const struct cgroup_limits limits = { .memory_bytes = memory_bytes, .cpu_millis = cpu_millis };
    const struct cgroup_child child = process_cgroup(process);
    struct machine *machine = process->machine;
    struct cgroup_meter meter = CGROUP_METER_INIT;
    int r;

    if (memory_bytes == 0 && cpu_millis == 0)
        return 0;
    if (process->machine->guest.ops->has_cells) {
        (void)err_set(err, ERR_UNSUPPORTED,
                      "a process of runtime 'gvisor' cannot have limits of its own");
        return err_remedy(err, "limit the sandbox");
    }
    if (!process_mark_limited(process))
        return 0;
    r = cgroup_limit_child(machine->host->cgroups, &child, &limits, &meter, err);
    lock_take(&machine->lock);
    if (process->meter.oom_fd < 0)
        process->meter.oom_fd = TAKE_FD(meter.oom_fd);
    lock_release(&machine->lock);
    cgroup_meter_close(&meter);
    /* A process that has ended needs no limits, and its cgroups may be gone. */
    if (process_is_over(process)) {
        process_unlimit(process);
        return 0;
    }
    return r;
}

void process_unlimit(const struct process *process)
{
    const struct cgroup_child child = process_cgroup(process);

    if (process->is_limited)
        cgroup_unlimit_child(process->machine->host->cgroups, &child);
}
