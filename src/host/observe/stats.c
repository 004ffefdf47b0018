// SPDX-License-Identifier: Apache-2.0
#include "host/observe/stats.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/process/process_internal.h"
#include "host/sandbox/sandbox_internal.h"

static void stats_fill_machine(const struct host *host, struct machine *machine,
                               struct sandbox_stats *ret)
{
    uint32_t own = runtime_guest_own_processes(&machine->guest) + machine->beside_processes;
    struct cgroup_usage usage;

    cgroup_read_usage(host->cgroups, machine->id, machine->guest.limits_group, &usage);
    ret->cpu_us = usage.cpu_us;
    ret->memory_bytes = usage.memory_bytes;
    ret->cache_bytes = usage.cache_bytes;
    ret->pids = usage.pids > own ? usage.pids - own : 0;
    ret->processes = machine_count_processes(machine);
}

static void stats_fill(struct sandbox *sandbox, bool wants_space, struct sandbox_stats *ret)
{
    cleanup_with(sandbox_info_done) struct sandbox_info info = { .labels = NULL };
    struct machine *machine, *second;
    struct cgroup_limits limits;
    int64_t age_ms;

    sandbox_get_info(sandbox, wants_space, &info);
    lock_take(&sandbox->lock);
    age_ms = clock_boot_ms() - sandbox->times.created;
    machine = sandbox->machine ? machine_ref(sandbox->machine) : NULL;
    second = sandbox->second ? machine_ref(sandbox->second) : NULL;
    lock_release(&sandbox->lock);
    host_limits(sandbox->host, &info.limits, &limits);
    *ret = (struct sandbox_stats){
        .state = info.state,
        .taken_ms = clock_ms(),
        .age_ms = age_ms > 0 ? (uint64_t)age_ms : 0,
        .limits = { limits.memory_bytes, limits.cpu_millis, limits.pids, info.limits.files },
        .space_used = info.space_used,
        .quota_bytes = info.quota_bytes,
    };
    memcpy(ret->id, info.id, sizeof(ret->id));
    memcpy(ret->name, info.name, sizeof(ret->name));
    memcpy(ret->owner, info.owner, sizeof(ret->owner));
    if (machine)
        stats_fill_machine(sandbox->host, machine, ret);
    if (second)
        ret->processes += machine_count_processes(second);
    machine_unref(second);
    machine_unref(machine);
}

void sandbox_limits_in_force(struct host *host, const struct sandbox_limits *asked,
                             struct sandbox_limits *ret)
{
    uint32_t cpu_millis = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN) * 1000;
    uint64_t memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    struct cgroup_limits limits;

    host_limits(host, asked, &limits);
    *ret = (struct sandbox_limits){ limits.memory_bytes, limits.cpu_millis, limits.pids,
                                    asked->files };
    if (ret->cpu_millis == 0 || ret->cpu_millis > cpu_millis)
        ret->cpu_millis = cpu_millis;
    if (ret->memory_bytes == 0 || ret->memory_bytes > memory_bytes)
        ret->memory_bytes = memory_bytes;
}

static int sandboxes_find(struct host *host, const struct stats_query *query, struct sandbox **ret,
                          struct err *err)
{
    for (size_t i = 0; i < query->count; i++) {
        int r = sandbox_find(host, query->caller, query->ids[i], &ret[i], err);

        if (r < 0)
            return r;
    }
    return 0;
}

static void sandboxes_free(struct sandbox **list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sandbox_unref(list[i]);
    free(list);
}

int sandbox_list_stats(struct host *host, const struct stats_query *query,
                       struct sandbox_stats **ret, size_t *ret_count, struct err *err)
{
    struct sandbox **list;
    size_t count = query->count;
    int r = 0;

    if (count == 0) {
        list = host_list_sandboxes(host, query->caller, &count);
    } else {
        list = xcalloc(count, sizeof(struct sandbox *));
        r = sandboxes_find(host, query, list, err);
    }
    if (r == 0) {
        *ret = xcalloc(count + 1, sizeof(**ret));
        *ret_count = count;
        for (size_t i = 0; i < count; i++)
            stats_fill(list[i], query->wants_space, &(*ret)[i]);
    }
    sandboxes_free(list, count);
    return r;
}
