// SPDX-License-Identifier: Apache-2.0
#include "host/core/settings.h"

#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "host/core/config.h"
#include "host/core/descriptors.h"
#include "host/core/host_internal.h"
#include "host/core/limits.h"
#include "host/core/uids.h"
#include "host/machine/pool.h"
#include "host/machine/runtime_choice.h"
#include "host/net/host_layer.h"
#include "host/observe/storage_monitor.h"
#include "host/owner/owner_internal.h"
#include "host/sandbox/expiry.h"
#include "host/sandbox/network.h"
#include "kernel/cgroup/cgroup.h"
#include "runtime/runtime.h"
#include "store/store.h"
#include "wire/message.h"

#define MIB (UINT64_C(1) << 20)
#define RESERVE_MIN (128 * MIB)
#define RESERVE_MAX (1024 * MIB)
#define QUOTA_AUTO_MAX (UINT64_C(20) << 30)

int settings_check(const struct config *config, struct err *err)
{
    enum { MEMORY_MIN = 4 << 10, MEMORY_MAX = 128 << 10, DISK_MIN = 1 << 20 };
    const struct runtime_ops *tier;

    if (config->sandboxes_max == 0 ||
        (config->sandboxes_max > HOST_UID_RANGES && config->sandboxes_max != CONFIG_AUTO_COUNT))
        return err_set(err, ERR_INVALID, "sandboxes.max must be between 1 and %d", HOST_UID_RANGES);
    if (config->output_memory < MEMORY_MIN || config->output_memory > MEMORY_MAX)
        return err_set(err, ERR_INVALID, "output.memory must be between %dK and %dK",
                       MEMORY_MIN >> 10, MEMORY_MAX >> 10);
    if (config->output_disk < DISK_MIN)
        return err_set(err, ERR_INVALID, "output.disk must be at least %dM", DISK_MIN >> 20);
    if (config->tool_tokens == 0 || config->tool_tokens > TOOL_OUTPUT_TOKENS_MAX)
        return err_set(err, ERR_INVALID, "tool.output-tokens must be between 1 and %d",
                       TOOL_OUTPUT_TOKENS_MAX);
    if (runtime_find(config->tools_tier_bash, &tier, err) < 0)
        return err_wrap(err, "tools.tier.bash");
    if (strcmp(config->e2b_pause, "deep") == 0 && !*config->remote_url)
        return err_set(err, ERR_INVALID, "e2b.pause is deep, but remote.url is not set");
    return runtime_rules_check(config, err) < 0 ? -err->errnum : network_config_check(config, err);
}

/* Half of the machine's memory: one sandbox leaves as much to all others. */
static uint64_t default_memory(const struct config *config)
{
    if (config->limit_memory != CONFIG_AUTO)
        return config->limit_memory;
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 2 & ~(MIB - 1);
}

/* A half of what the group of all sandboxes leaves to the machine. */
static uint64_t memory_reserve(const struct config *config)
{
    uint64_t part = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 32;

    if (config->memory_reserve != CONFIG_AUTO)
        return config->memory_reserve;
    if (part < RESERVE_MIN)
        return RESERVE_MIN;
    return part < RESERVE_MAX ? part : RESERVE_MAX;
}

/* A quarter of the storage. None if that would enable quotas for a whole filesystem of others. */
static uint64_t default_quota(const struct host *host, const struct config *config)
{
    struct store_space space = { 0 };
    struct err ignored;
    uint64_t bytes;

    if (config->quota != CONFIG_AUTO)
        return config->quota;
    if (!host->store || !store_is_quota_on(host->store) ||
        store_space(host->store, &space, &ignored) < 0)
        return 0;
    bytes = (space.used + space.available) / 4 & ~(MIB - 1);
    return bytes < QUOTA_AUTO_MAX ? bytes : QUOTA_AUTO_MAX;
}

void settings_apply(struct host *host, const struct config *config)
{
    const struct runtime_ops *tier;
    struct err ignored;

    host->limit_memory = default_memory(config);
    host->limit_cpus = config->limit_cpus;
    host->limit_pids = config->limit_pids;
    host->limit_files = config->limit_files;
    host->limit_files_soft = config->limit_files_soft;
    host->memory_reserve = memory_reserve(config);
    host->sandboxes_max = config->sandboxes_max == CONFIG_AUTO_COUNT ? descriptors_sandboxes_max()
                                                                     : config->sandboxes_max;
    host->snapshots_max = config->snapshots_max;
    host->default_quota = default_quota(host, config);
    host->storage_warn = config->storage_warn;
    host->storage_full = config->storage_full;
    host->health_interval_ms = config->health_interval;
    host->output_memory = config->output_memory;
    host->output_disk = config->output_disk;
    host->processes_keep_ms = config->processes_keep;
    host->processes_max = config->processes_max;
    host->tool_timeout_ms = config->tool_timeout == CONFIG_NO_TIMEOUT ? 0 : config->tool_timeout;
    host->tool_tokens = config->tool_tokens;
    host->tool_snapshots = config->tool_snapshots;
    host->tool_memory = config->tool_memory;
    host->tool_cpus = config->tool_cpus;
    if (runtime_find(config->tools_tier_bash, &tier, &ignored) == 0) /* settings_check did */
        atomic_store(&host->tool_tier, tier);
    host->pause_drain_ms = config->pause_drain;
    host->shutdown_ms = config->shutdown_timeout;
    lock_take(&host->lock);
    owner_table_configure(host->owners, &config->owners);
    lock_release(&host->lock);
    runtime_rules_configure(host, config);
    network_configure(host, config);
}

int host_reload(struct host *host, const struct config *config, struct err *err)
{
    int r = settings_check(config, err);

    if (r < 0)
        return r;
    settings_apply(host, config);
    network_apply(host);
    pool_resize(host->pool, config->pool_size);
    storage_monitor_wake(host->storage_monitor);
    expiry_wake(host->expiry); /* limits on kept processes may be lower now */
    return 0;
}

void host_get_tool_settings(const struct host *host, struct host_tool_settings *ret)
{
    *ret = (struct host_tool_settings){
        .timeout_ms = host->tool_timeout_ms,
        .output_tokens = host->tool_tokens,
        .takes_snapshots = host->tool_snapshots,
        .memory_bytes = host->tool_memory,
        .cpus_milli = host->tool_cpus,
        .bash_tier = atomic_load(&host->tool_tier)->name,
    };
}

void host_limits(const struct host *host, const struct sandbox_limits *limits,
                 struct cgroup_limits *ret)
{
    *ret = (struct cgroup_limits){
        .memory_bytes = limits->memory_bytes ? limits->memory_bytes : host->limit_memory,
        .cpu_millis = limits->cpu_millis ? limits->cpu_millis : host->limit_cpus,
        .pids = limits->pids ? limits->pids : host->limit_pids,
    };
}

void host_files_limit(const struct host *host, uint32_t files, struct message_rlimit *ret)
{
    uint64_t hard = files ? files : host->limit_files, soft = host->limit_files_soft;

    *ret = (struct message_rlimit){ .resource = RLIMIT_NOFILE,
                                    .soft = soft < hard ? soft : hard,
                                    .hard = hard };
}
