// SPDX-License-Identifier: Apache-2.0
/* Labels have few values, all of them known here: never an id or a name from a client, besides a
 * bounded number of owners. */
#include "host/observe/metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/llm/usage_metrics.h"
#include "host/machine/pool.h"
#include "host/net/net.h"
#include "host/observe/event_ring.h"
#include "host/observe/metrics_internal.h"
#include "host/owner/owner.h"
#include "host/process/process.h"
#include "host/sandbox/sandbox_internal.h"

enum { METRICS_OWNERS_MAX = 100 };

static const uint64_t bounds_ns[METRICS_BUCKETS] = {
    250000,    500000,    1000000,   2500000,    5000000,    10000000,   25000000,    50000000,
    100000000, 250000000, 500000000, 1000000000, 2500000000, 5000000000, 10000000000, 30000000000,
};

static const char *const timed_names[TIMED_COUNT] = {
    [TIMED_CREATE] = "create",
    [TIMED_RUN] = "run",
    [TIMED_EXEC] = "exec",
    [TIMED_SNAPSHOT] = "snapshot",
    [TIMED_ROLLBACK] = "rollback",
    [TIMED_FORK] = "fork",
    [TIMED_PAUSE] = "pause",
    [TIMED_DEEP_PAUSE] = "deep-pause",
    [TIMED_RESUME] = "resume",
    [TIMED_STOP] = "stop",
    [TIMED_START] = "start",
    [TIMED_DESTROY] = "destroy",
    [TIMED_TOOL_HOST] = "tool-host",
    [TIMED_TOOL_WORKER] = "tool-worker",
    [TIMED_TOOL_PROCESS] = "tool-process",
};

int metrics_note(struct metrics *metrics, enum timed what, uint64_t began_ns, int result)
{
    uint64_t ns = clock_ns() - began_ns;
    size_t i = 0;

    if (result < 0) {
        metrics_add(&metrics->timed[what].failures);
        return result;
    }
    while (i < METRICS_BUCKETS && ns > bounds_ns[i])
        i++;
    metrics_add(&metrics->timed[what].buckets[i]);
    atomic_fetch_add_explicit(&metrics->timed[what].total_ns, ns, memory_order_relaxed);
    return result;
}

void host_tool_began(struct host *host)
{
    metrics_add(&host->metrics->tools_running);
}

void host_tool_ended(struct host *host, unsigned tier, uint64_t began_ns, int result)
{
    (void)metrics_note(host->metrics, TIMED_TOOL_HOST + tier, began_ns, result);
    atomic_fetch_sub_explicit(&host->metrics->tools_running, 1, memory_order_relaxed);
}

static uint64_t counter_get(const atomic_uint_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* The counters for control planes, derived from events. */
static int write_totals(const struct metrics *metrics, struct buf *out)
{
    static const struct {
        const char *name;
        enum event_type type;
        const char *help;
    } totals[] = {
        { "holt_sandboxes_created_total", EVENT_SANDBOX_CREATED, "Sandboxes created." },
        { "holt_sandboxes_forked_total", EVENT_SANDBOX_FORKED, "Sandboxes created by forks." },
        { "holt_sandboxes_paused_total", EVENT_SANDBOX_PAUSED, "Pauses." },
        { "holt_sandboxes_deep_paused_total", EVENT_SANDBOX_DEEP_PAUSED, "Deep pauses." },
        { "holt_backups_created_total", EVENT_BACKUP_CREATED, "Backups." },
        { "holt_sandboxes_resumed_total", EVENT_SANDBOX_RESUMED, "Resumes." },
        { "holt_sandboxes_destroyed_total", EVENT_SANDBOX_DESTROYED, "Sandboxes destroyed." },
        { "holt_sandboxes_exhausted_total", EVENT_SANDBOX_EXHAUSTED,
          "Sandboxes ended because they held memory of the kernel that no limit covers." },
        { "holt_turns_total", EVENT_TURN_COMPLETED, "Turns completed." },
        { "holt_rollbacks_total", EVENT_SANDBOX_ROLLED_BACK, "Rollbacks." },
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(totals); i++) {
        r = metric_begin(out, totals[i].name, METRIC_COUNTER, totals[i].help);
        if (r == 0)
            r = metric_add(out, totals[i].name, NULL,
                           counter_get(&metrics->events[totals[i].type]));
    }
    if (r == 0)
        r = metric_begin(out, "holt_snapshots_total", METRIC_COUNTER,
                         "Snapshots taken, including those of turns.");
    if (r == 0)
        r = metric_add(out, "holt_snapshots_total", NULL,
                       counter_get(&metrics->events[EVENT_TURN_COMPLETED]) +
                           counter_get(&metrics->events[EVENT_SNAPSHOT_CREATED]));
    return r;
}

static int write_events(const struct metrics *metrics, struct buf *out)
{
    char label[64];
    int r = metric_begin(out, "holt_events_total", METRIC_COUNTER, "Events by type.");

    for (unsigned i = 0; r == 0 && i < EVENT_TYPES; i++) {
        (void)snprintf(label, sizeof(label), "type=\"%s\"", event_type_name(i));
        r = metric_add(out, "holt_events_total", label, counter_get(&metrics->events[i]));
    }
    return r;
}

static int write_timed(const struct metrics *metrics, struct buf *out)
{
    static const char name[] = "holt_operation_duration_seconds";
    uint64_t buckets[METRICS_BUCKETS + 1];
    char label[64];
    int r = metric_begin(out, name, METRIC_HISTOGRAM,
                         "Duration of successful operations; an exec counts until its start.");

    for (unsigned i = 0; r == 0 && i < TIMED_COUNT; i++) {
        const struct metric_histogram histogram = { bounds_ns, buckets, METRICS_BUCKETS,
                                                    counter_get(&metrics->timed[i].total_ns) };

        for (size_t k = 0; k <= METRICS_BUCKETS; k++)
            buckets[k] = counter_get(&metrics->timed[i].buckets[k]);
        (void)snprintf(label, sizeof(label), "operation=\"%s\"", timed_names[i]);
        r = metric_add_histogram(out, name, label, &histogram);
    }
    if (r == 0)
        r = metric_begin(out, "holt_operation_failures_total", METRIC_COUNTER,
                         "Failed or refused operations.");
    for (unsigned i = 0; r == 0 && i < TIMED_COUNT; i++) {
        (void)snprintf(label, sizeof(label), "operation=\"%s\"", timed_names[i]);
        r = metric_add(out, "holt_operation_failures_total", label,
                       counter_get(&metrics->timed[i].failures));
    }
    return r;
}

static int write_ends(const struct metrics *metrics, struct buf *out)
{
    char label[64];
    int r = metric_begin(out, "holt_processes_ended_total", METRIC_COUNTER,
                         "Ended processes by outcome.");

    for (unsigned i = OUTCOME_EXITED; r == 0 && i <= OUTCOME_NOT_STARTED; i++) {
        (void)snprintf(label, sizeof(label), "outcome=\"%s\"", process_outcome_name(i));
        r = metric_add(out, "holt_processes_ended_total", label,
                       counter_get(&metrics->process_ends[i]));
    }
    return r;
}

static int write_gauge(struct buf *out, const char *name, const char *help, uint64_t value)
{
    int r = metric_begin(out, name, METRIC_GAUGE, help);

    return r < 0 ? r : metric_add(out, name, NULL, value);
}

static int write_counter(struct buf *out, const char *name, const char *help, uint64_t value)
{
    int r = metric_begin(out, name, METRIC_COUNTER, help);

    return r < 0 ? r : metric_add(out, name, NULL, value);
}

static int write_sandboxes(const struct host_census *census, struct buf *out)
{
    char label[64];
    int r = metric_begin(out, "holt_sandboxes", METRIC_GAUGE, "Sandboxes by state.");

    for (unsigned i = 0; r == 0 && i < SANDBOX_STATES; i++) {
        (void)snprintf(label, sizeof(label), "state=\"%s\"", sandbox_state_name(i));
        r = metric_add(out, "holt_sandboxes", label, census->sandboxes[i]);
    }
    if (r == 0)
        r = write_gauge(out, "holt_runs", "Running throw-away machines.", census->runs);
    if (r == 0)
        r = write_gauge(out, "holt_processes_running", "Running processes in all sandboxes.",
                        census->processes);
    return r;
}

static int write_tools(const struct host *host, struct buf *out)
{
    return write_gauge(out, "holt_tools_running", "Tool calls in progress.",
                       metrics_tools_running(host->metrics));
}

static int write_network(const struct host *host, struct buf *out)
{
    struct net_counters counters;

    net_count(host->net, &counters);
    const struct {
        const char *name, *help;
        uint64_t value;
    } rows[] = {
        { "holt_network_connections_total", "Connections that sandboxes have made to others.",
          counters.connections },
        { "holt_network_denied_total", "Connections and names that a policy has refused.",
          counters.denied },
        { "holt_network_dial_failures_total", "Allowed connections whose host did not answer.",
          counters.failed_dials },
        { "holt_network_limited_total", "Connections and queries that a bound has refused.",
          counters.limited },
        { "holt_secret_leaks_total", "Placeholders and values of secrets where they must not be.",
          counters.leaks },
        { "holt_network_queries_total", "Queries to the resolver of sandboxes.", counters.queries },
        { "holt_network_sent_bytes_total", "Bytes that sandboxes have sent.", counters.bytes_out },
        { "holt_network_received_bytes_total", "Bytes that sandboxes have received.",
          counters.bytes_in },
        { "holt_network_restarts_total", "Restarts of holt-net after its end.", counters.restarts },
    };
    int r = write_gauge(out, "holt_network_connections", "Open connections of sandboxes.",
                        counters.open);

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(rows); i++)
        r = write_counter(out, rows[i].name, rows[i].help, rows[i].value);
    return r;
}

static int write_pool(struct host *host, struct buf *out)
{
    int r = write_gauge(out, "holt_pool_size", "Configured size of the warm pool.",
                        pool_size(host->pool));

    if (r == 0)
        r = write_gauge(out, "holt_pool_ready", "Machines ready in the warm pool.",
                        pool_ready(host->pool));
    if (r == 0)
        r = write_counter(out, "holt_pool_hits_total", "Creates served from the warm pool.",
                          counter_get(&host->metrics->pool_hits));
    if (r == 0)
        r = write_counter(out, "holt_pool_misses_total", "Creates that found the warm pool empty.",
                          counter_get(&host->metrics->pool_misses));
    return r;
}

static int write_health(const struct host_health *health, struct buf *out)
{
    char label[160];
    int r = write_gauge(out, "holt_storage_used_bytes", "Used storage.", health->storage_used);

    if (r == 0)
        r = write_gauge(out, "holt_storage_available_bytes", "Available storage.",
                        health->storage_available);
    if (r == 0)
        r = metric_begin(out, "holt_resource_low", METRIC_GAUGE,
                         "1: the resource of the daemon is near its end.");
    if (r == 0)
        r = metric_add(out, "holt_resource_low", "resource=\"file-descriptors\"",
                       health->descriptors.is_low);
    for (size_t i = 0; r == 0 && i < HOST_RESOURCES; i++) {
        (void)snprintf(label, sizeof(label), "resource=\"%s\"", health->resources[i].name);
        r = metric_add(out, "holt_resource_low", label, health->resources[i].is_low);
    }
    if (r == 0)
        r = write_gauge(out, "holt_health", "0: ok, 1: degraded, 2: unhealthy.", health->status);
    if (r == 0)
        r = metric_begin(out, "holt_uptime_seconds", METRIC_GAUGE,
                         "Time since the daemon started.");
    if (r == 0)
        r = metric_add_seconds(out, "holt_uptime_seconds", NULL, health->uptime_ms * 1000000);
    if (r == 0)
        r = metric_begin(out, "holt_build_info", METRIC_GAUGE, "Version of the daemon.");
    (void)snprintf(label, sizeof(label), "version=\"%s\",storage=\"%s\",runtime=\"%s\"",
                   HOLT_VERSION, health->storage_backend, health->runtime);
    return r < 0 ? r : metric_add(out, "holt_build_info", label, 1);
}

/* Returns the number of entries of a directory of /proc/self. */
static uint64_t count_entries(const char *path)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    uint64_t count = 0;

    if (!dir)
        return 0;
    while ((entry = readdir(dir)))
        count += entry->d_name[0] != '.';
    (void)closedir(dir);
    return count;
}

static uint64_t resident_bytes(void)
{
    unsigned long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (!file)
        return 0;
    if (fscanf(file, "%lu %lu", &size, &resident) != 2) /* NOLINT(cert-err34-c): the kernel's own */
        resident = 0;
    (void)fclose(file);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The names are those of Prometheus' own client libraries. */
static int write_process(struct buf *out)
{
    struct rusage usage = { 0 };
    struct rlimit files = { 0 };
    uint64_t cpu_us;
    int r;

    (void)getrusage(RUSAGE_SELF, &usage);
    (void)getrlimit(RLIMIT_NOFILE, &files);
    cpu_us = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
             (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    r = write_gauge(out, "process_resident_memory_bytes", "Resident memory of the daemon.",
                    resident_bytes());
    if (r == 0)
        r = write_gauge(out, "process_open_fds", "Open file descriptors of the daemon.",
                        count_entries("/proc/self/fd"));
    if (r == 0)
        r = write_gauge(out, "process_max_fds", "Maximum number of open file descriptors.",
                        files.rlim_cur);
    if (r == 0)
        r = write_gauge(out, "process_threads", "Threads of the daemon.",
                        count_entries("/proc/self/task"));
    if (r == 0)
        r = metric_begin(out, "process_cpu_seconds_total", METRIC_COUNTER,
                         "CPU time of the daemon.");
    return r < 0 ? r : metric_add_seconds(out, "process_cpu_seconds_total", NULL, cpu_us * 1000);
}

/* Orders owners by their number of sandboxes, most first. */
static int owner_compare(const void *one, const void *other)
{
    uint64_t a = ((const struct owner_info *)one)->used[CEILING_SANDBOXES];
    uint64_t b = ((const struct owner_info *)other)->used[CEILING_SANDBOXES];

    return a < b ? 1 : a > b ? -1 : 0;
}

/* Keeps the owners with most sandboxes, and adds all others up in one that no owner can be called,
 * so that the number of time series is bounded. Returns how many are left. */
static size_t owners_fold(struct owner_info *owners, size_t count)
{
    struct owner_info *rest = &owners[METRICS_OWNERS_MAX];

    qsort(owners, count, sizeof(*owners), owner_compare);
    while (count > 0 && owners[count - 1].used[CEILING_SANDBOXES] == 0)
        count--;
    if (count <= METRICS_OWNERS_MAX)
        return count;
    (void)snprintf(rest->name, sizeof(rest->name), "_other");
    for (size_t i = METRICS_OWNERS_MAX + 1; i < count; i++)
        for (enum ceiling which = 0; which < CEILING_AMOUNTS; which++)
            rest->used[which] += owners[i].used[which];
    return METRICS_OWNERS_MAX + 1;
}

/* Lists the owners that the caller may know. */
static size_t owners_list(struct host *host, const struct caller *caller, struct owner_info **ret)
{
    size_t count = 0;

    if (caller_may_watch_host(caller)) {
        host_list_owners(host, ret, &count);
        return owners_fold(*ret, count);
    }
    *ret = xcalloc(1, sizeof(**ret));
    host_get_owner_for(host, caller, caller->owner, *ret);
    return 1;
}

int host_metrics_write_owners(struct host *host, const struct caller *caller, struct buf *out)
{
    static const struct {
        const char *name, *help;
    } rows[CEILING_AMOUNTS] = {
        [CEILING_SANDBOXES] = { "holt_owner_sandboxes",
                                "Sandboxes of an owner, with throw-away machines." },
        [CEILING_MEMORY] = { "holt_owner_memory_limit_bytes", "Sum of their memory limits." },
        [CEILING_CPUS] = { "holt_owner_cpu_limit_cores", "Sum of their CPU limits." },
        [CEILING_DISK] = { "holt_owner_disk_quota_bytes", "Sum of their quotas." },
        [CEILING_PIDS] = { "holt_owner_pids_limit", "Sum of their limits of processes." },
    };
    enum { NS_PER_MILLI = 1000000 }; /* thousandths of a CPU are printed like a time */
    cleanup_free struct owner_info *owners = NULL;
    char label[OWNER_NAME_MAX + 16];
    size_t count = owners_list(host, caller, &owners);
    int r = 0;

    for (enum ceiling which = 0; r == 0 && which < CEILING_AMOUNTS; which++) {
        r = metric_begin(out, rows[which].name, METRIC_GAUGE, rows[which].help);
        for (size_t i = 0; r == 0 && i < count; i++) {
            (void)snprintf(label, sizeof(label), "owner=\"%s\"", owners[i].name);
            r = which == CEILING_CPUS
                    ? metric_add_seconds(out, rows[which].name, label,
                                         owners[i].used[which] * NS_PER_MILLI)
                    : metric_add(out, rows[which].name, label, owners[i].used[which]);
        }
    }
    return r < 0 ? r : metrics_write_owner_models(host->llm, caller, out);
}

int host_metrics_write(struct host *host, struct buf *out)
{
    struct host_health health = { 0 };
    struct host_census census = { 0 };
    int r;

    host_health(host, &caller_root, &health);
    host_take_census(host, &caller_root, &census);
    r = write_sandboxes(&census, out);
    if (r == 0)
        r = write_totals(host->metrics, out);
    if (r == 0)
        r = write_timed(host->metrics, out);
    if (r == 0)
        r = write_ends(host->metrics, out);
    if (r == 0)
        r = write_tools(host, out);
    if (r == 0)
        r = write_network(host, out);
    if (r == 0)
        r = metrics_write_models(host->llm, out);
    if (r == 0)
        r = write_pool(host, out);
    if (r == 0)
        r = write_health(&health, out);
    if (r == 0)
        r = write_events(host->metrics, out);
    return r < 0 ? r : write_process(out);
}
