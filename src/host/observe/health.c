// SPDX-License-Identifier: Apache-2.0
/* The health and the capabilities of the host. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "host/backup/remote_store.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/machine/pool.h"
#include "host/machine/runtime_choice.h"
#include "host/observe/audit.h"
#include "host/observe/memory_guard.h"
#include "host/observe/metrics_internal.h"
#include "host/observe/storage_monitor.h"
#include "host/sandbox/sandbox_internal.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/seccomp.h"
#include "store/disk.h"
#include "store/store.h"

enum { INODES_LOW = 1000 };

/* After memory and processes. */
enum {
    RESOURCE_DISK = 2,
    RESOURCE_INODES,
    RESOURCE_MACHINE_MEMORY,
    RESOURCE_SOCKET_MEMORY,
    RESOURCE_OPEN_FILES,
};

/* Returns the used percentage of the storage. */
static unsigned space_percent(const struct store_space *space)
{
    uint64_t total = space->used + space->available;

    return total == 0 ? 100 : (unsigned)((double)space->used * 100 / (double)total);
}

/* Fails when others have filled the disk of the state directory: the registry and the logs need
 * what is left of it. */
static int check_disk(struct host *host, struct err *err)
{
    struct disk_space disk;
    int r = store_disk(host->store, &disk, err);

    if (r < 0)
        return r;
    if (disk.inodes_total > 0 && disk.inodes == 0)
        return err_refuse(err, CAUSE_POOL_FULL,
                          "no inodes are left on the disk of the state directory");
    if (!disk.is_full)
        return 0;
    return err_refuse(err, CAUSE_POOL_FULL,
                      "the disk of the state directory is full (%" PRIu64 " MiB left): free space "
                      "there",
                      disk.available >> 20);
}

int host_check_space(struct host *host, struct err *err)
{
    struct store_space space;
    int r = store_space(host->store, &space, err);

    if (r == 0)
        r = check_disk(host, err);
    if (r < 0) {
        if (host->storage_monitor)
            storage_monitor_wake(host->storage_monitor);
        return r;
    }
    if (space_percent(&space) < host->storage_full)
        return 0;
    return err_refuse(err, CAUSE_POOL_FULL,
                      "the storage is %u %% full (%" PRIu64 " MiB left): remove sandboxes or "
                      "snapshots, or add space",
                      space_percent(&space), space.available >> 20);
}

static void health_worsen(struct host_health *health, enum health_status status, const char *format,
                          ...) __attribute__((format(printf, 3, 4)));

static void health_worsen(struct host_health *health, enum health_status status, const char *format,
                          ...)
{
    size_t used = strlen(health->errors);
    va_list args;

    if (status > health->status)
        health->status = status;
    if (used > 0 && used + 1 < sizeof(health->errors))
        health->errors[used++] = '\n';
    va_start(args, format);
    (void)vsnprintf(health->errors + used, sizeof(health->errors) - used, format, args);
    va_end(args);
}

static void health_check_space(struct host *host, struct host_health *ret)
{
    struct store_space space = { 0 };
    struct err err = { 0 };

    if (store_space(host->store, &space, &err) < 0) {
        ret->storage_condition = STORAGE_FAILED;
        health_worsen(ret, HEALTH_UNHEALTHY, "%s", err.msg);
        return;
    }
    ret->storage_used = space.used;
    ret->storage_available = space.available;
    if (space_percent(&space) >= host->storage_full) {
        ret->storage_condition = STORAGE_FULL;
        health_worsen(ret, HEALTH_UNHEALTHY, "the storage is %u %% full: creates fail",
                      space_percent(&space));
    } else if (space_percent(&space) >= host->storage_warn) {
        ret->storage_condition = STORAGE_DEGRADED;
        health_worsen(ret, HEALTH_DEGRADED, "the storage is %u %% full", space_percent(&space));
    }
}

/* Fills in the resources of the disk. */
static void health_check_disk(struct host *host, struct host_health *ret)
{
    struct host_resource *space = &ret->resources[RESOURCE_DISK];
    struct host_resource *inodes = &ret->resources[RESOURCE_INODES];
    struct disk_space disk = { 0 };
    struct err err = { 0 };

    (void)store_disk(host->store, &disk, &err);
    *space = (struct host_resource){ "disk", disk.total - disk.available, disk.total,
                                     disk.is_low || disk.is_full };
    *inodes = (struct host_resource){ "inodes", disk.inodes_total - disk.inodes, disk.inodes_total,
                                      disk.inodes_total > 0 && disk.inodes < INODES_LOW };
    if (check_disk(host, &err) < 0) {
        if (ret->storage_condition < STORAGE_FULL)
            ret->storage_condition = STORAGE_FULL;
        health_worsen(ret, HEALTH_UNHEALTHY, "%s; creates fail, and the ballast is freed", err.msg);
        return;
    }
    if (space->is_low)
        health_worsen(ret, HEALTH_DEGRADED,
                      "the disk of the state directory has %" PRIu64 " MiB left",
                      disk.available >> 20);
    if (inodes->is_low)
        health_worsen(ret, HEALTH_DEGRADED,
                      "the disk of the state directory has %" PRIu64 " inodes left", disk.inodes);
    if ((space->is_low || inodes->is_low) && ret->storage_condition < STORAGE_DEGRADED)
        ret->storage_condition = STORAGE_DEGRADED;
}

/* Everything but a known good state counts as failed. */
static void health_check_storage(struct host *host, struct host_health *ret)
{
    struct err err = { 0 };

    ret->storage_backend = store_backend(host->store);
    if (store_state(host->store, ret->storage_state, &err) < 0) {
        (void)snprintf(ret->storage_state, sizeof(ret->storage_state), "UNAVAIL");
        ret->storage_condition = STORAGE_FAILED;
        health_worsen(ret, HEALTH_UNHEALTHY, "%s", err.msg);
        return;
    }
    health_check_space(host, ret);
    if (strcmp(ret->storage_state, "DEGRADED") == 0) {
        if (ret->storage_condition < STORAGE_DEGRADED)
            ret->storage_condition = STORAGE_DEGRADED;
        health_worsen(ret, HEALTH_DEGRADED,
                      "a device of the storage has failed (see 'zpool status')");
    } else if (strcmp(ret->storage_state, "ONLINE") != 0) {
        ret->storage_condition = STORAGE_FAILED;
        health_worsen(ret, HEALTH_UNHEALTHY, "the storage is %s", ret->storage_state);
    }
}

static void health_check_descriptors(struct host_health *ret)
{
    struct err err = { 0 };

    descriptors_count(&ret->descriptors);
    if (descriptors_check_sandbox(&err) < 0)
        health_worsen(ret, HEALTH_UNHEALTHY, "%s", err.msg);
    else if (ret->descriptors.is_low)
        health_worsen(ret, HEALTH_DEGRADED, "%u of %u file descriptors are open",
                      ret->descriptors.open, ret->descriptors.max);
}

/* Returns whether less than an eighth is left; max 0: there is no limit. */
static bool is_nearly(uint64_t used, uint64_t max)
{
    return max > 0 && used >= max / 8 * 7;
}

static void health_check_resources(const struct host *host, struct host_health *ret)
{
    static const struct {
        const char *name;
        enum cgroup_limit limit;
    } kinds[] = { { "memory", CGROUP_LIMIT_MEMORY }, { "processes", CGROUP_LIMIT_PIDS } };
    struct err err = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        struct cgroup_total total;

        cgroup_root_read_total(host->cgroups, kinds[i].limit, &total);
        ret->resources[i] = (struct host_resource){
            .name = kinds[i].name,
            .used = total.used,
            .max = total.max,
            .is_low = total.is_full || is_nearly(total.used, total.max),
        };
        if (ret->resources[i].is_low)
            health_worsen(ret, HEALTH_DEGRADED, "sandboxes have %" PRIu64 " of %" PRIu64 " %s",
                          total.used, total.max,
                          kinds[i].limit == CGROUP_LIMIT_MEMORY ? "bytes of memory" : "processes");
    }
    if (cgroup_root_check_room(host->cgroups, &err) < 0)
        health_worsen(ret, HEALTH_UNHEALTHY, "%s", err.msg);
}

/* Reads how many files are open on the whole machine; a line is "OPEN 0 MAX". */
static void open_files_read(struct host_resource *ret)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(128);
    char *end;

    *ret = (struct host_resource){ .name = "open-files" };
    if (file_read_at(AT_FDCWD, "/proc/sys/fs/file-nr", &text) < 0 || text.len == 0)
        return;
    ret->used = strtoull(text.data, &end, 10);
    (void)strtoull(end, &end, 10);
    ret->max = strtoull(end, NULL, 10);
    ret->is_low = is_nearly(ret->used, ret->max);
}

/* Fills in the resources of the whole machine. */
static void health_check_machine(const struct host *host, struct host_health *ret)
{
    struct host_resource *memory = &ret->resources[RESOURCE_MACHINE_MEMORY];
    struct host_resource *sockets = &ret->resources[RESOURCE_SOCKET_MEMORY];
    struct host_resource *files = &ret->resources[RESOURCE_OPEN_FILES];
    struct memory_now now;
    struct err err = { 0 };

    memory_guard_read(host->memory_guard, &now);
    *memory = (struct host_resource){ "machine-memory", now.total - now.available, now.total,
                                      now.available < host->memory_reserve };
    *sockets = (struct host_resource){ "socket-memory", now.sockets, now.sockets_max,
                                       is_nearly(now.sockets, now.sockets_max) };
    open_files_read(files);
    if (memory_guard_check(host->memory_guard, &err) < 0)
        health_worsen(ret, HEALTH_UNHEALTHY, "%s", err.msg);
    else if (memory->is_low)
        health_worsen(ret, HEALTH_DEGRADED, "the machine has %" PRIu64 " MiB of memory left",
                      now.available >> 20);
    if (sockets->is_low)
        health_worsen(ret, HEALTH_DEGRADED,
                      "sockets have %" PRIu64 " of %" PRIu64 " MiB (net.ipv4.tcp_mem)",
                      now.sockets >> 20, now.sockets_max >> 20);
    if (files->is_low)
        health_worsen(ret, HEALTH_DEGRADED,
                      "%" PRIu64 " of %" PRIu64 " files are open (fs.file-max)", files->used,
                      files->max);
}

/* Locked. */
static bool caller_sees_machine(const struct caller *caller, const struct machine *machine)
{
    const struct caller *creator = &machine->creator;

    return caller_sees(caller, creator->owner, creator->scope, creator->scope_count);
}

/* Locked. */
static bool caller_sees_sandbox(const struct caller *caller, const struct sandbox *sandbox)
{
    const struct sandbox_info *info = &sandbox->info;

    return caller_sees(caller, info->owner, info->labels, info->label_count);
}

void host_take_census(struct host *host, const struct caller *caller, struct host_census *ret)
{
    *ret = (struct host_census){ .runs = 0 };
    lock_take(&host->lock);
    for (struct machine *machine = host->machines; machine; machine = machine->next) {
        if (!caller_sees_machine(caller, machine))
            continue;
        ret->runs++;
        ret->processes += machine_count_processes(machine);
    }
    for (struct sandbox *sandbox = host->sandboxes; sandbox; sandbox = sandbox->next) {
        if (!caller_sees_sandbox(caller, sandbox))
            continue;
        lock_take(&sandbox->lock);
        ret->sandboxes[sandbox->info.state]++;
        if (sandbox->machine)
            ret->processes += machine_count_processes(sandbox->machine);
        if (sandbox->second)
            ret->processes += machine_count_processes(sandbox->second);
        lock_release(&sandbox->lock);
    }
    lock_release(&host->lock);
}

/* Leaves what a caller that is no admin may know. The status stays: it says whether creates work.
 */
static void health_restrict(const struct host_census *own, struct host_health *ret)
{
    const struct host_health all = *ret;

    *ret = (struct host_health){
        .sandboxes = own->runs,
        .processes = own->processes,
        .uptime_ms = all.uptime_ms,
        .runtime = all.runtime,
        .storage_backend = all.storage_backend,
        .status = all.status,
    };
    for (size_t i = 0; i < ARRAY_SIZE(own->sandboxes); i++)
        ret->sandboxes += own->sandboxes[i];
    (void)snprintf(ret->storage_state, sizeof(ret->storage_state), "%s", all.storage_state);
    if (all.errors[0] != '\0')
        (void)snprintf(ret->errors, sizeof(ret->errors),
                       "the host needs attention: its administrators can see why");
}

void host_health(struct host *host, const struct caller *caller, struct host_health *ret)
{
    struct host_census census;

    *ret = (struct host_health){
        .pool_ready = pool_ready(host->pool),
        .pool_size = pool_size(host->pool),
        .uptime_ms = clock_ms() - host->started_ms,
        .runtime = host->default_runtime->name,
    };
    health_check_storage(host, ret);
    health_check_disk(host, ret);
    health_check_descriptors(ret);
    health_check_resources(host, ret);
    health_check_machine(host, ret);
    host_take_census(host, caller, &census);
    ret->processes = census.processes;
    ret->tools = metrics_tools_running(host->metrics);
    lock_take(&host->lock);
    ret->sandboxes = host->active;
    if (host->audit_failures > 0)
        health_worsen(ret, HEALTH_DEGRADED, "%u events are missing from the audit log: %.160s",
                      host->audit_failures, host->audit_error);
    lock_release(&host->lock);
    if (!caller_may_watch_host(caller))
        health_restrict(&census, ret);
}

/* All backends have snapshots; they differ in the cost of a snapshot and in quotas. */
void host_capabilities(struct host *host, const char *owner, struct host_capabilities *ret)
{
    const struct runtime_holder holder = { .owner = owner };
    struct err ignored;

    *ret = (struct host_capabilities){
        .snapshots = true,
        .rollback = true,
        .fork = true,
        .quota = store_has_quota(host->store),
        .atomic_snapshots = store_is_atomic(host->store),
        .pause = true,
        .deep_pause = remote_store_is_usable(host),
        .launch = true,
        .streaming_progress = true,
        .tier_routing = host_check_runtime(host, &holder, runtime_gvisor.name, &ignored) == 0 &&
                        runtime_gvisor.probe(&ignored) == 0,
        .memory_limit = cgroup_root_has(host->cgroups, CGROUP_LIMIT_MEMORY),
        .cpu_limit = cgroup_root_has(host->cgroups, CGROUP_LIMIT_CPU),
        .pids_limit = cgroup_root_has(host->cgroups, CGROUP_LIMIT_PIDS),
        .sandboxes_max = host->sandboxes_max,
        .snapshots_max = host->snapshots_max,
        .forks_max = FORK_MAX,
        .default_quota = host->default_quota,
        .storage_backend = store_backend(host->store),
        .default_runtime = host->default_runtime->name,
        .limits_from = cgroup_root_kind(host->cgroups),
    };
}

int host_check_netlink(struct err *err)
{
    int r = seccomp_probe_listener();

    if (r == 0)
        return 0;
    (void)err_set(err, ERR_UNSUPPORTED,
                  "netlink sockets of sandboxes have no limit: seccomp does not notify here (%s)",
                  strerror(-r));
    return err_remedy(err, "run holtd outside of a container whose own filter notifies");
}

bool host_runtime_at(struct host *host, size_t index, struct host_runtime *ret)
{
    const struct runtime_ops *ops = runtime_at(index);

    (void)host;
    if (!ops)
        return false;
    *ret = (struct host_runtime){ .name = ops->name, .strength = ops->strength };
    ret->result = ops->probe(&ret->problem);
    return true;
}

int host_read_audit(struct host *host, const char *sandbox, audit_fn each, void *context,
                    uint64_t *ret_lines, struct err *err)
{
    return audit_read(host->state_fd, sandbox, each, context, ret_lines, err);
}
