// SPDX-License-Identifier: Apache-2.0
#include "host/host.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "host/config.h"
#include "host/host_internal.h"
#include "host/init_path.h"
#include "kernel/cgroup.h"
#include "store/store.h"

enum {
    /* By systemd's custom, ids in this range belong neither to people nor to /etc/subuid. */
    UID_FIRST = 524288,
    UID_LAST = 1879048191,
    SANDBOXES_MAX = (UID_LAST - UID_FIRST) / RUNTIME_IDS_PER_SANDBOX,
    LABEL_BYTES = 32,
    REAP_WAIT_S = 10,
};

/* A number for the state directory (FNV-1a), so that a restarted daemon knows what is its own and
 * two daemons hardly ever use the same uids. */
static uint32_t hash_of(const char *state)
{
    cleanup_free char *real = realpath(state, NULL); /* however it is spelt */
    uint32_t hash = 2166136261U;

    for (const char *c = real ? real : state; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619U;
    return hash;
}

int host_admit(struct host *host, struct err *err)
{
    bool is_full;

    (void)pthread_mutex_lock(&host->lock);
    is_full = host->active >= host->sandboxes_max;
    if (!is_full)
        host->active++;
    (void)pthread_mutex_unlock(&host->lock);
    if (is_full)
        return err_set(err, ERR_EXHAUSTED, "%u sandboxes are the most this host is configured for",
                       host->sandboxes_max);
    return 0;
}

void host_dismiss(struct host *host)
{
    (void)pthread_mutex_lock(&host->lock);
    host->active--;
    (void)pthread_mutex_unlock(&host->lock);
}

int host_take_uids(struct host *host)
{
    int slot = -ENOSPC;

    (void)pthread_mutex_lock(&host->lock);
    for (uint32_t i = 0; slot < 0 && i < SANDBOXES_MAX; i++) {
        uint32_t candidate = (host->next_uid_slot + i) % SANDBOXES_MAX;

        if (!host->uid_slots[candidate])
            slot = (int)candidate;
    }
    if (slot >= 0) {
        host->uid_slots[slot] = 1;
        host->next_uid_slot = (unsigned)slot + 1;
        host->live++;
    }
    (void)pthread_mutex_unlock(&host->lock);
    return slot;
}

void host_return_uids(struct host *host, unsigned slot)
{
    (void)pthread_mutex_lock(&host->lock);
    host->uid_slots[slot] = 0;
    host->live--;
    (void)pthread_cond_broadcast(&host->changed);
    (void)pthread_mutex_unlock(&host->lock);
}

uid_t host_first_uid(unsigned slot)
{
    return (uid_t)(UID_FIRST + slot * RUNTIME_IDS_PER_SANDBOX);
}

void host_reap_later(struct host *host, struct machine *machine)
{
    (void)pthread_mutex_lock(&host->lock);
    machine->next = host->reap_queue;
    host->reap_queue = machine;
    host->reaping++;
    (void)pthread_cond_broadcast(&host->changed);
    (void)pthread_mutex_unlock(&host->lock);
}

/* Waits for processes to end and deletes files, so that no request has to. */
static void *reaper_main(void *argument)
{
    struct host *host = argument;

    (void)pthread_mutex_lock(&host->lock);
    while (!host->is_stopping || host->live > 0) {
        struct machine *machine = host->reap_queue;

        if (!machine) {
            (void)pthread_cond_wait(&host->changed, &host->lock);
            continue;
        }
        host->reap_queue = machine->next;
        (void)pthread_mutex_unlock(&host->lock);
        machine_reap(machine);
        (void)pthread_mutex_lock(&host->lock);
        host->reaping--;
        (void)pthread_cond_broadcast(&host->changed);
    }
    (void)pthread_mutex_unlock(&host->lock);
    return NULL;
}

static int open_runtime(struct host *host, const struct config *config, struct err *err)
{
    cleanup_free char *init_path = NULL;
    char label[LABEL_BYTES];
    int r;

    (void)snprintf(label, sizeof(label), "holt-%08" PRIx32, hash_of(config->state));
    r = init_path_find(&init_path, err);
    if (r == 0)
        r = runtime_find(config->runtime, &host->default_runtime, err);
    if (r == 0)
        r = host->default_runtime->probe(err);
    if (r == 0)
        r = cgroup_root_open(label, &host->cgroups, err);
    if (r == 0)
        r = cgroup_root_sweep(host->cgroups, NULL, NULL, err);
    return r < 0 ? r : runtime_open(host->cgroups, init_path, &host->runtime, err);
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

static struct host *host_new(const struct config *config)
{
    struct host *host = xcalloc(1, sizeof(*host));

    host->default_template = xstrdup(config->template);
    (void)snprintf(host->warm_template, sizeof(host->warm_template), "%s", config->template);
    host->default_limits = (struct sandbox_limits){
        .memory_bytes = config->limit_memory,
        .cpu_millis = config->limit_cpus,
        .pids = config->limit_pids,
    };
    host->sandboxes_max = config->sandboxes_max;
    host->uid_slots = xcalloc(SANDBOXES_MAX, 1);
    host->next_uid_slot = hash_of(config->state) % SANDBOXES_MAX;
    host->started_ms = clock_ms();
    (void)pthread_mutex_init(&host->lock, NULL);
    (void)pthread_cond_init(&host->changed, NULL);
    return host;
}

static void host_free(struct host *host)
{
    runtime_close(host->runtime);
    store_close(host->store);
    cgroup_root_close(host->cgroups);
    (void)pthread_cond_destroy(&host->changed);
    (void)pthread_mutex_destroy(&host->lock);
    free(host->uid_slots);
    free(host->default_template);
    free(host);
}

int host_open(const struct config *config, struct host **ret, struct err *err)
{
    struct host *host;
    int r;

    if (config->sandboxes_max == 0 || config->sandboxes_max > SANDBOXES_MAX)
        return err_set(err, ERR_INVALID, "sandboxes.max must be between 1 and %d", SANDBOXES_MAX);
    host = host_new(config);
    /* Leftover processes go before leftover files: they may be writing them. */
    r = open_runtime(host, config, err);
    if (r == 0)
        r = open_store(host, config, err);
    if (r == 0)
        r = reactor_start(&host->reactor, err);
    if (r == 0) {
        r = -pthread_create(&host->reaper, NULL, reaper_main, host);
        if (r < 0)
            (void)err_sys(err, r, "start the reaper");
    }
    if (r < 0) {
        reactor_stop(host->reactor);
        host_free(host);
        return r;
    }
    r = pool_start(host, host->default_runtime, config->pool_size, &host->pool, err);
    if (r < 0) {
        host_close(host);
        return r;
    }
    *ret = host;
    return 0;
}

static void destroy_all(struct host *host)
{
    for (;;) {
        struct machine *machine;

        (void)pthread_mutex_lock(&host->lock);
        machine = host->sandboxes ? machine_ref(host->sandboxes) : NULL;
        (void)pthread_mutex_unlock(&host->lock);
        if (!machine)
            return;
        machine_destroy(machine);
        machine_unref(machine);
    }
}

void host_close(struct host *host)
{
    if (!host)
        return;
    pool_stop(host->pool);
    destroy_all(host);
    (void)pthread_mutex_lock(&host->lock);
    host->is_stopping = true;
    (void)pthread_cond_broadcast(&host->changed);
    (void)pthread_mutex_unlock(&host->lock);
    (void)pthread_join(host->reaper, NULL);
    reactor_stop(host->reactor);
    pool_free(host->pool);
    host_free(host);
}

struct store *host_store(struct host *host)
{
    return host->store;
}

/* Until what has ended by now holds nothing any more, or for a while. */
static void wait_reaped(struct host *host)
{
    struct timespec deadline;
    int r = 0;

    (void)clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += REAP_WAIT_S;
    (void)pthread_mutex_lock(&host->lock);
    while (r == 0 && host->reaping > 0)
        r = pthread_cond_timedwait(&host->changed, &host->lock, &deadline);
    (void)pthread_mutex_unlock(&host->lock);
}

int host_remove_template(struct host *host, const char *name, struct err *err)
{
    int r;

    (void)pthread_mutex_lock(&host->lock);
    if (strcmp(host->warm_template, name) == 0)
        (void)snprintf(host->warm_template, sizeof(host->warm_template), "%s",
                       host->default_template);
    (void)pthread_mutex_unlock(&host->lock);
    pool_drop_template(host->pool, name);
    r = template_remove(host->store, name, err);
    if (r < 0 && err->kind == ERR_BUSY) {
        wait_reaped(host);
        r = template_remove(host->store, name, err);
    }
    return r;
}

void host_health(struct host *host, struct host_health *ret)
{
    ret->pool_ready = pool_ready(host->pool);
    ret->uptime_ms = clock_ms() - host->started_ms;
    ret->runtime = host->default_runtime->name;
    ret->sandboxes = 0;
    (void)pthread_mutex_lock(&host->lock);
    for (const struct machine *machine = host->sandboxes; machine; machine = machine->next)
        ret->sandboxes++;
    (void)pthread_mutex_unlock(&host->lock);
}
