// SPDX-License-Identifier: Apache-2.0
#include "host/core/host.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/files/tree.h"
#include "base/log.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "host/backup/remote_store.h"
#include "host/backup/settle.h"
#include "host/codebase/codebase.h"
#include "host/core/config.h"
#include "host/core/descriptors.h"
#include "host/core/extension.h"
#include "host/core/host_internal.h"
#include "host/core/owned_template.h"
#include "host/core/recover.h"
#include "host/core/settings.h"
#include "host/core/uids.h"
#include "host/image/endpoint.h"
#include "host/llm/llm.h"
#include "host/machine/guest_socket.h"
#include "host/machine/machine_internal.h"
#include "host/machine/pool.h"
#include "host/machine/reaper.h"
#include "host/net/host_layer.h"
#include "host/net/net.h"
#include "host/observe/audit.h"
#include "host/observe/event_internal.h"
#include "host/observe/event_ring.h"
#include "host/observe/history.h"
#include "host/observe/memory_guard.h"
#include "host/observe/metrics_internal.h"
#include "host/observe/owner_events.h"
#include "host/observe/storage_monitor.h"
#include "host/observe/thread_check.h"
#include "host/owner/owner_internal.h"
#include "host/port/thread.h"
#include "host/process/journal.h"
#include "host/process/service.h"
#include "host/process/writer.h"
#include "host/registry/registry.h"
#include "host/sandbox/expiry.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/secret/secret.h"
#include "host/view/machine_view.h"
#include "host/view/view.h"
#include "host/volume/named_volume.h"
#include "host/volume/unrecorded.h"
#include "kernel/cgroup/cgroup.h"
#include "runtime/program.h"
#include "store/store.h"

enum {
    LABEL_BYTES = 32,
    CLOSE_MS = 8000, /* for the end of what still runs when the daemon stops */
    STORE_TRIES = 100,
    STORE_PAUSE_MS = 100,
};

/* Returns a number derived from the path of the state directory (FNV-1a). It names the daemon's
 * cgroups, so that a restarted daemon finds its own, and spreads the uids of several daemons. */
static uint32_t state_hash(const char *state)
{
    cleanup_free char *real = realpath(state, NULL); /* one number for all spellings */
    uint32_t hash = 2166136261U;

    for (const char *c = real ? real : state; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619U;
    return hash;
}

/* Locked. */
static int host_count(struct host *host, const struct owner_charge *charge, size_t count,
                      struct err *err)
{
    int r;

    if (host->active >= host->sandboxes_max || count > host->sandboxes_max - host->active)
        return err_refuse(err, CAUSE_MAX_SESSIONS_REACHED, "sandbox limit reached (%u)",
                          host->sandboxes_max);
    r = owner_table_add(host->owners, charge, count, err);
    if (r == 0)
        host->active += (uint32_t)count;
    return r;
}

int host_admit(struct host *host, const struct owner_charge *charge, size_t count, struct err *err)
{
    int r = descriptors_check_sandbox(err);

    if (r == 0)
        r = cgroup_root_check_room(host->cgroups, err);
    if (r == 0)
        r = memory_guard_check(host->memory_guard, err);
    if (r < 0) {
        storage_monitor_wake(host->storage_monitor);
        return r;
    }
    lock_take(&host->lock);
    r = host_count(host, charge, count, err);
    lock_release(&host->lock);
    return r;
}

void host_count_in(struct host *host, const struct owner_charge *charge)
{
    lock_take(&host->lock);
    host->active++;
    owner_table_count_in(host->owners, charge);
    lock_release(&host->lock);
}

int host_is_open(struct host *host, struct err *err)
{
    return atomic_load(&host->is_closing)
               ? err_refuse(err, CAUSE_SHUTTING_DOWN, "the daemon is shutting down")
               : 0;
}

void host_dismiss(struct host *host, const struct owner_charge *charge)
{
    lock_take(&host->lock);
    host->active--;
    owner_table_subtract(host->owners, charge);
    lock_release(&host->lock);
}

void host_reap_later(struct host *host, struct machine *machine)
{
    lock_take(&host->lock);
    host->reaping++;
    lock_release(&host->lock);
    reaper_add(host->reaper, machine);
}

void host_note_reaped(struct host *host)
{
    lock_take(&host->lock);
    host->reaping--;
    cond_broadcast(&host->changed);
    lock_release(&host->lock);
}

static int open_cgroups(struct host *host, const struct config *config, struct recovery *recovery,
                        struct err *err)
{
    cleanup_free char *home = xasprintf("%s/cgroups", config->state);
    char label[LABEL_BYTES];
    int r;

    (void)snprintf(label, sizeof(label), "holt-%08" PRIx32, state_hash(config->state));
    r = cgroup_root_open_at(label, home, &host->cgroups, err);
    if (r == 0)
        cgroup_root_reserve(host->cgroups);
    if (r == 0)
        r = unrecorded_find_machines(host->cgroups, recovery, err);
    if (r == 0)
        r = cgroup_root_sweep(host->cgroups, recover_keeps, recovery, err);
    fault_point("recover.swept");
    return r;
}

static int open_runtime(struct host *host, const struct config *config, struct err *err)
{
    cleanup_free char *init_path = NULL, *tools_path = NULL;
    int r = program_find("holt-init", &init_path, err);

    if (r == 0)
        r = program_find("holt-tools", &tools_path, err);
    if (r == 0)
        r = program_load("holt-tools", tools_path, &host->tools_fd, err);
    if (r == 0)
        r = runtime_find(config->runtime, &host->default_runtime, err);
    if (r == 0)
        r = host->default_runtime->probe(err);
    return r < 0 ? r : runtime_open(host->cgroups, init_path, &host->runtime, err);
}

/* Opens the directory of guest sockets, and removes those of machines that have not survived. */
static int open_guests(struct host *host, struct recovery *recovery, struct err *err)
{
    int r;

    if (mkdirat(host->state_fd, "guests", 0700) < 0 && errno != EEXIST)
        return err_sys(err, -errno, "make 'guests' in the state directory");
    host->guests_fd = openat(host->state_fd, "guests", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (host->guests_fd < 0)
        return err_sys(err, -errno, "open 'guests' in the state directory");
    r = guest_socket_sweep(host->guests_fd, recover_keeps, recovery);
    return r < 0 ? err_sys(err, r, "remove sockets in 'guests'") : 0;
}

static int open_outputs(struct host *host, struct err *err)
{
    if (mkdirat(host->state_fd, "output", 0700) < 0 && errno != EEXIST)
        return err_sys(err, -errno, "make 'output' in the state directory");
    host->outputs_fd = openat(host->state_fd, "output", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    return host->outputs_fd < 0 ? err_sys(err, -errno, "open 'output' in the state directory") : 0;
}

/* Opens the databases and logs in the state directory. */
static int open_records(struct host *host, const struct config *config, struct err *err)
{
    cleanup_free char *path = xasprintf("%s/holt.db", config->state);
    cleanup_free char *journal = xasprintf("%s/processes.db", config->state);
    int r = tree_make(config->state, 0700);

    if (r < 0)
        return err_sys(err, r, "make state directory '%s'", config->state);
    host->state_fd = open(config->state, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (host->state_fd < 0)
        return err_sys(err, -errno, "open state directory '%s'", config->state);
    r = registry_open(path, &host->registry, err);
    if (r == 0)
        r = secrets_open(host->state_fd, host->registry, &host->secrets, err);
    if (r == 0)
        r = host_load_owners(host, err);
    if (r == 0)
        r = named_volumes_migrate(host, err);
    if (r == 0)
        r = journal_open(journal, &host->journal, err);
    if (r == 0)
        r = open_outputs(host, err);
    if (r == 0)
        r = event_ring_open(host->state_fd, &host->events, err);
    host->owner_events = owner_events_new();
    return r == 0 ? audit_open(host->state_fd, &host->audit, err) : r;
}

static int open_store(struct host *host, const struct config *config, struct err *err)
{
    const struct store_options options = {
        .state_dir = config->state,
        .template_bytes_max = config->template_bytes_max,
        .template_files_max = config->template_files_max,
        .storage = config->storage,
    };

    return store_open(&options, &host->store, err);
}

/* Failed storage stays failed while sandboxes hold it open. Ending them loses only memory that they
 * could not have written any more; their files stay as they were when it failed. */
static int open_failed_store(struct host *host, const struct config *config, struct err *err)
{
    int r = cgroup_root_sweep(host->cgroups, NULL, NULL, err);

    if (r < 0)
        return r;
    for (int i = 0; i < STORE_TRIES; i++) {
        r = open_store(host, config, err);
        if (r == 0 || err->kind != ERR_BUSY)
            return r;
        clock_sleep_ms(STORE_PAUSE_MS);
    }
    return r;
}

static struct host *host_new(const struct config *config, const struct host_extension *extension)
{
    struct host *host = xcalloc(1, sizeof(*host));

    host->default_template = xstrdup(config->template);
    host->image_config = image_config_new(config);
    host->remote = remote_store_new(config);
    host->has_deep_e2b_pause = strcmp(config->e2b_pause, "deep") == 0;
    (void)snprintf(host->warm_template, sizeof(host->warm_template), "%s", config->template);
    lock_init(&host->owners_lock, LOCK_OWNERS);
    lock_init(&host->lock, LOCK_HOST);
    host->owners = owner_table_new();
    settings_apply(host, config);
    host->is_stop_all = config->stop_all;
    host->snapshots_prefix = xasprintf("%s-", config->snapshots_prefix);
    host->state_fd = host->guests_fd = host->outputs_fd = host->tools_fd = -EBADF;
    host->last_sandbox = &host->sandboxes;
    host->sandbox_index = xcalloc(1, sizeof(*host->sandbox_index));
    host_uids_init(host, state_hash(config->state));
    host->expiry = expiry_new(host);
    host->thread_check = thread_check_new();
    host->extension = extension;
    host->extension_data = extension ? extension->host_new() : NULL;
    host->metrics = xcalloc(1, sizeof(*host->metrics));
    host->started_ms = clock_ms();
    cond_init(&host->changed);
    return host;
}

static void host_free(struct host *host)
{
    free(host->snapshots_prefix);
    runtime_close(host->runtime);
    store_close(host->store);
    cgroup_root_close(host->cgroups);
    audit_close(host->audit);
    event_ring_close(host->events);
    owner_events_free(host->owner_events);
    free(host->metrics);
    journal_close(host->journal);
    secrets_close(host->secrets);
    registry_close(host->registry);
    (void)fd_close(host->tools_fd);
    (void)fd_close(host->outputs_fd);
    (void)fd_close(host->guests_fd);
    (void)fd_close(host->state_fd);
    cond_destroy(&host->changed);
    lock_destroy(&host->lock);
    lock_destroy(&host->owners_lock);
    owner_table_free(host->owners);
    network_free(host);
    free(host->unrecorded);
    free(host->uid_slots);
    free(host->sandbox_index);
    free(host->default_template);
    image_config_free(host->image_config);
    remote_store_free(host->remote);
    free(host);
}

static int start_threads(struct host *host, const struct config *config, struct err *err)
{
    int r = reactor_start(&host->reactor, err);

    if (r == 0)
        r = ports_start(config, &host->ports, err);
    if (r == 0)
        r = llm_open(host->state_fd, config, &host->llm, err);
    if (r == 0)
        r = net_open(host, config, &host->net, err);
    if (r == 0)
        r = host_start_views(host, err);
    if (r == 0)
        r = tree_cleaner_start(&host->tree_cleaner, err);
    if (r == 0)
        r = process_writer_start(host, &host->writer, err);
    return r == 0 ? reaper_start(host, &host->reaper, err) : r;
}

/* The order matters: leftover processes end before their files are removed, since they may be
 * writing them, and sandboxes are recovered before clients can ask for them. */
static int host_fill(struct host *host, const struct config *config, struct recovery *recovery,
                     struct err *err)
{
    int r = open_records(host, config, err);

    if (r == 0)
        r = recovery_open(host->registry, recovery, err);
    if (r == 0)
        r = open_cgroups(host, config, recovery, err);
    if (r >= 0)
        r = open_guests(host, recovery, err);
    if (r < 0)
        return r;
    r = open_store(host, config, err);
    if (r < 0 && err->kind == ERR_BUSY)
        r = open_failed_store(host, config, err);
    if (r == 0)
        r = open_runtime(host, config, err);
    if (r == 0)
        r = start_threads(host, config, err);
    if (r < 0)
        return r;
    settings_apply(host, config); /* again: the default quota needs the storage */
    host_event(host, EVENT_DAEMON_STARTED, json_pack("{s:s}", "version", HOLT_VERSION));
    if (registry_lost_frames(host->registry) > 0)
        host_event(
            host, EVENT_REGISTRY_INCOMPLETE,
            json_pack("{s:I}", "lostFrames", (json_int_t)registry_lost_frames(host->registry)));
    recovery_run(recovery, host);
    r = named_volumes_recover(host, err);
    if (r == 0)
        r = codebases_recover(host, err);
    if (r == 0)
        r = owned_templates_recover(host, err);
    if (r == 0)
        r = unrecorded_find(host, recovery, err);
    recovery_finish(host);
    views_sweep(host->views);
    fault_point("recover.done");
    if (r == 0)
        r = pool_start(host, host->default_runtime, config->pool_size, &host->pool, err);
    if (r == 0)
        r = expiry_start(host->expiry, err);
    if (r == 0)
        r = memory_guard_open(host, &host->memory_guard, err);
    if (r == 0)
        r = storage_monitor_start(host, &host->storage_monitor, err);
    if (r == 0)
        r = history_start(host, &host->history, err);
    if (r == 0)
        r = settle_start(host, err);
    return r == 0 ? memory_guard_start(host->memory_guard, err) : r;
}

int host_open(const struct config *config, const struct host_extension *extension,
              struct host **ret, struct err *err)
{
    cleanup_with(recovery_done) struct recovery recovery = { .infos = NULL };
    struct host *host;
    int r;

    r = settings_check(config, err);
    if (r == 0)
        r = descriptors_check_limit(err);
    if (r < 0)
        return r;
    host = host_new(config, extension);
    r = host_fill(host, config, &recovery, err);
    if (r < 0) {
        host_close(host);
        return r;
    }
    *ret = host;
    return 0;
}

static void destroy_machines(struct host *host)
{
    for (;;) {
        struct machine *machine;

        lock_take(&host->lock);
        machine = host->machines ? machine_ref(host->machines) : NULL;
        lock_release(&host->lock);
        if (!machine)
            return;
        machine_destroy(machine);
        machine_unref(machine);
    }
}

/* Leaves the sandboxes running, or stops them when stop_all is configured. */
static void release_sandboxes(struct host *host)
{
    struct err ignored;

    while (host->sandboxes) {
        struct sandbox *sandbox = host->sandboxes;

        host->sandboxes = sandbox->next;
        if (host->sandboxes)
            host->sandboxes->slot = &host->sandboxes;
        sandbox->slot = NULL;
        if (host->is_stop_all && sandbox->machine)
            (void)sandbox_halt(sandbox, sandbox->info.state, &ignored);
        services_close(sandbox);
        if (sandbox->second)
            machine_release(TAKE_PTR(sandbox->second));
        if (sandbox->machine)
            machine_release(TAKE_PTR(sandbox->machine));
        fault_point("close.parting");
        sandbox_unref(sandbox);
    }
}

uint64_t host_refuse_tools(struct host *host)
{
    if (!host->is_stop_all)
        return 0;
    atomic_store(&host->refuses_tools, true);
    return host->shutdown_ms;
}

bool host_has_tools(const struct host *host)
{
    return metrics_tools_running(host->metrics) > 0;
}

void host_drain(struct host *host)
{
    if (atomic_exchange(&host->is_closing, true))
        return;
    host->close_deadline_ms = clock_after_ms(CLOSE_MS);
    if (host->reaper)
        reaper_abandon_at(host->reaper, host->close_deadline_ms);
    if (!host->events)
        return;
    host_event(host, EVENT_DAEMON_STOPPING, NULL);
    event_ring_shut(host->events);
    owner_events_shut(host->owner_events);
}

/* Stops the threads that end machines and remove their files. Returns whether they have ended:
 * otherwise they may still use the host. */
static bool close_machines(struct host *host)
{
    bool is_rested = expiry_stop(host->expiry, host->close_deadline_ms);

    settle_stop(host);

    memory_guard_stop(host->memory_guard);
    storage_monitor_stop(host->storage_monitor);
    history_stop(TAKE_PTR(host->history));
    pool_stop(host->pool);
    fault_point("close.rested");
    release_sandboxes(host);
    destroy_machines(host);
    if (host->extension)
        host->extension->host_free(host->extension_data);
    is_rested = reaper_stop(host->reaper) && is_rested;
    return tree_cleaner_stop(host->tree_cleaner, host->close_deadline_ms) && is_rested;
}

bool host_close(struct host *host)
{
    bool is_rested;

    if (!host)
        return true;
    host_drain(host);
    is_rested = close_machines(host);
    fault_point("close.parted");
    if (host->audit && host->events)
        host_event(host, EVENT_DAEMON_STOPPED, NULL);
    if (!is_rested) {
        log_warn("some sandboxes have not ended within %d s: the next start removes what is "
                 "left of them",
                 CLOSE_MS / 1000);
        return false;
    }
    ports_stop(host->ports);
    reactor_stop(host->reactor);
    process_writer_stop(host->writer);
    ports_free(host->ports);
    net_close(host->net);
    host_stop_views(host);
    llm_close(host->llm);
    reaper_free(host->reaper);
    tree_cleaner_free(host->tree_cleaner);
    expiry_free(host->expiry);
    memory_guard_free(host->memory_guard);
    thread_check_free(host->thread_check);
    pool_free(host->pool);
    host_free(host);
    return true;
}

struct llm *host_llm(struct host *host)
{
    return host->llm;
}

struct store *host_store(struct host *host)
{
    return host->store;
}

struct secrets *host_secrets(struct host *host)
{
    return host->secrets;
}

bool host_has_deep_e2b_pause(const struct host *host)
{
    return host->has_deep_e2b_pause;
}

int host_state_fd(const struct host *host)
{
    return host->state_fd;
}

void *host_extension_data(struct host *host)
{
    return host->extension_data;
}

int host_find_runtime(const struct host *host, const char *name, const struct runtime_ops **ret,
                      struct err *err)
{
    int r = 0;

    *ret = host->default_runtime;
    if (name)
        r = runtime_find(name, ret, err);
    return r < 0 ? r : (*ret)->probe(err);
}
