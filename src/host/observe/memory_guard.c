// SPDX-License-Identifier: Apache-2.0
/* A round in calm times reads two short files. Only when one of them says so, the guard looks at
 * the sandboxes, without new memory of its own: their list has its room before. */
#include "host/observe/memory_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/observe/event_internal.h"
#include "host/observe/kernel_memory.h"
#include "host/observe/storage_monitor.h"
#include "host/sandbox/sandbox_internal.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/netns_enter.h"
#include "kernel/sockets.h"

#define MIB (UINT64_C(1) << 20)
#define SHARE_MIN (64 * MIB)    /* that the sockets of any sandbox may hold */
#define OFFENCE_MIN (16 * MIB)  /* a sandbox with less is no reason for a shortage */
#define NEAR_BYTES (2048 * MIB) /* above the reserve: an attack takes some of it in a second */

enum {
    ROUND_MS = 100,
    ROUND_NEAR_MS = 20,
    ROUND_SHARE = 20, /* a round takes one part in so many of the time */
    RELIEF_MS = 1000, /* what a killed sandbox held is freed meanwhile */
    SHARE_OF_LIMIT = 4,
    SHARE_OF_MACHINE = 64, /* a quarter of what TCP may have before the kernel slows it down */
    ROOM_MORE = 64,
    TEXT_BYTES = 2048,
};

struct candidate {
    struct machine *machine; /* referenced */
    uint64_t bytes;
};

struct memory_guard {
    struct host *host;
    struct worker worker;
    int meminfo_fd, sockstat_fd, tcp_mem_fd;
    int netns_fd; /* of the daemon, like the id */
    ino_t netns;
    atomic_bool is_short;
    atomic_uint_fast64_t available;

    /* Used by the thread only. */
    uint64_t pause_until_ms;
    struct candidate *list;
    size_t count, room;
};

/* Returns the bytes of a line "NAME: 123 kB"; 0 if there is none. */
static uint64_t meminfo_bytes(const char *text, const char *name)
{
    const char *line = strstr(text, name);

    return line ? strtoull(line + strlen(name), NULL, 10) << 10 : 0;
}

void memory_guard_read(const struct memory_guard *guard, struct memory_now *ret)
{
    struct sockets_total sockets;
    char text[TEXT_BYTES];
    ssize_t n;

    *ret = (struct memory_now){ .total = 0 };
    if (!guard)
        return;
    n = pread(guard->meminfo_fd, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    ret->total = meminfo_bytes(text, "MemTotal:");
    ret->available = meminfo_bytes(text, "MemAvailable:");
    sockets_read_total(guard->sockstat_fd, guard->tcp_mem_fd, &sockets);
    ret->sockets = sockets.bytes;
    ret->sockets_max = sockets.pressure;
}

int memory_guard_check(const struct memory_guard *guard, struct err *err)
{
    if (!guard || !atomic_load(&guard->is_short))
        return 0;
    return err_refuse(err, CAUSE_CAPACITY_EXCEEDED,
                      "out of memory: the machine has %" PRIu64 " MiB left, less than "
                      "memory.reserve",
                      (uint64_t)atomic_load(&guard->available) / MIB);
}

/* Makes room for all sandboxes that there are, and some more. */
static void list_make_room(struct memory_guard *guard)
{
    size_t wanted;

    lock_take(&guard->host->lock);
    wanted = guard->host->active;
    lock_release(&guard->host->lock);
    if (guard->room > wanted)
        return;
    guard->room = wanted * 2 + ROOM_MORE;
    guard->list = xreallocarray(guard->list, guard->room, sizeof(*guard->list));
    memset(guard->list, 0, guard->room * sizeof(*guard->list)); /* no page is missing later */
}

static void list_add(struct memory_guard *guard, struct machine *machine)
{
    if (guard->count < guard->room)
        guard->list[guard->count++] = (struct candidate){ .machine = machine_ref(machine) };
}

static void list_fill(struct memory_guard *guard)
{
    struct host *host = guard->host;

    guard->count = 0;
    lock_take(&host->lock);
    for (struct machine *machine = host->machines; machine; machine = machine->next)
        list_add(guard, machine);
    for (struct sandbox *sandbox = host->sandboxes; sandbox; sandbox = sandbox->next) {
        lock_take(&sandbox->lock);
        if (sandbox->machine)
            list_add(guard, sandbox->machine);
        if (sandbox->second)
            list_add(guard, sandbox->second);
        lock_release(&sandbox->lock);
    }
    lock_release(&host->lock);
    for (size_t i = 0; i < guard->count; i++)
        guard->list[i].bytes = kernel_memory_of_sockets(guard->list[i].machine, guard->netns);
    (void)netns_enter(guard->netns_fd);
}

static void list_clear(struct memory_guard *guard)
{
    for (size_t i = 0; i < guard->count; i++)
        machine_unref(guard->list[i].machine);
    guard->count = 0;
}

static void candidate_end(struct memory_guard *guard, const struct candidate *candidate,
                          const struct err *reason)
{
    if (!machine_exhaust(candidate->machine, reason))
        return;
    guard->pause_until_ms = clock_ms() + RELIEF_MS;
    machine_event(candidate->machine, EVENT_SANDBOX_EXHAUSTED,
                  json_pack("{s:s, s:I, s:o}", "resource", "kernel-memory", "bytes",
                            (json_int_t)candidate->bytes, "reason", json_text(reason->msg)));
}

/* A machine without processes holds nothing. */
static bool has_processes(struct machine *machine)
{
    struct cgroup_usage usage;

    cgroup_read_usage(machine->host->cgroups, machine->id, machine->guest.limits_group, &usage);
    return usage.pids == 0 || usage.pids > runtime_guest_own_processes(&machine->guest);
}

/* Ends the sandbox that holds most, unless that is little: then something else is the reason. */
static void shortage_relieve(struct memory_guard *guard, uint64_t available)
{
    bool counts_locks = kernel_memory_has_locks(OFFENCE_MIN);
    const struct candidate *worst = NULL;
    struct err reason = { 0 };

    list_fill(guard);
    for (size_t i = 0; i < guard->count; i++) {
        struct candidate *candidate = &guard->list[i];

        if (has_processes(candidate->machine))
            candidate->bytes += kernel_memory_of_processes(candidate->machine, counts_locks);
        if (!worst || candidate->bytes > worst->bytes)
            worst = candidate;
    }
    if (worst && worst->bytes >= OFFENCE_MIN) {
        (void)err_set(&reason, ERR_EXHAUSTED,
                      "resource_exhausted: kernel memory: the sandbox held about %" PRIu64
                      " MiB outside of its limit when the machine had %" PRIu64 " MiB left",
                      worst->bytes / MIB, available / MIB);
        candidate_end(guard, worst, &reason);
    }
    list_clear(guard);
}

/* Returns what the sockets of a machine may hold outside of its limit. */
static uint64_t socket_share(const struct machine *machine, uint64_t total)
{
    uint64_t limit = cgroup_read_memory_limit(machine->host->cgroups, machine->guest.limits_group);
    uint64_t share = total / SHARE_OF_MACHINE;

    if (limit > 0 && limit / SHARE_OF_LIMIT < share)
        share = limit / SHARE_OF_LIMIT;
    return share > SHARE_MIN ? share : SHARE_MIN;
}

/* Ends the sandboxes whose sockets hold more than their share. */
static void shares_enforce(struct memory_guard *guard, uint64_t total)
{
    list_fill(guard);
    for (size_t i = 0; i < guard->count; i++) {
        const struct candidate *candidate = &guard->list[i];
        struct err reason = { 0 };
        uint64_t share;

        if (candidate->bytes <= SHARE_MIN)
            continue;
        share = socket_share(candidate->machine, total);
        if (candidate->bytes <= share)
            continue;
        (void)err_set(&reason, ERR_EXHAUSTED,
                      "resource_exhausted: kernel memory: the sandbox held %" PRIu64 " MiB in "
                      "queues of sockets outside of its limit, more than %" PRIu64 " MiB",
                      candidate->bytes / MIB, share / MIB);
        candidate_end(guard, candidate, &reason);
    }
    list_clear(guard);
}

static void shortage_note(struct memory_guard *guard, bool is_short, uint64_t available)
{
    atomic_store(&guard->available, available);
    if (atomic_exchange(&guard->is_short, is_short) != is_short)
        storage_monitor_wake(guard->host->storage_monitor);
}

/* Returns the milliseconds until the next round. */
static uint64_t guard_round(struct memory_guard *guard)
{
    uint64_t began_ms = clock_ms(), reserve = guard->host->memory_reserve;
    uint64_t took_ms, rest_ms;
    struct memory_now now;
    bool is_short;

    memory_guard_read(guard, &now);
    is_short = now.available > 0 && now.available < reserve;
    shortage_note(guard, is_short, now.available);
    if (!is_short || guard->room == 0) /* the daemon may be started in a shortage */
        list_make_room(guard);
    if (is_short && began_ms >= guard->pause_until_ms)
        shortage_relieve(guard, now.available);
    else if (!is_short && now.sockets > SHARE_MIN)
        shares_enforce(guard, now.total);
    took_ms = (clock_ms() - began_ms) * ROUND_SHARE;
    if (is_short && guard->pause_until_ms < began_ms + took_ms)
        guard->pause_until_ms = began_ms + took_ms;
    rest_ms = is_short || now.available < reserve + NEAR_BYTES || now.sockets > SHARE_MIN / 4
                  ? ROUND_NEAR_MS
                  : ROUND_MS;
    return took_ms > rest_ms && !is_short ? took_ms : rest_ms;
}

static void guard_main(void *argument)
{
    struct memory_guard *guard = argument;

    while (worker_rest(&guard->worker, guard_round(guard), 0))
        ;
}

void memory_guard_free(struct memory_guard *guard)
{
    if (!guard)
        return;
    worker_destroy(&guard->worker);
    (void)fd_close(guard->meminfo_fd);
    (void)fd_close(guard->sockstat_fd);
    (void)fd_close(guard->tcp_mem_fd);
    (void)fd_close(guard->netns_fd);
    free(guard->list);
    free(guard);
}

int memory_guard_open(struct host *host, struct memory_guard **ret, struct err *err)
{
    struct memory_guard *guard = xcalloc(1, sizeof(*guard));

    guard->host = host;
    worker_init(&guard->worker, LOCK_MEMORY_GUARD);
    guard->meminfo_fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    guard->sockstat_fd = open("/proc/net/sockstat", O_RDONLY | O_CLOEXEC);
    guard->tcp_mem_fd = open("/proc/sys/net/ipv4/tcp_mem", O_RDONLY | O_CLOEXEC);
    guard->netns_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    guard->netns = netns_id();
    if (guard->meminfo_fd < 0 || guard->netns_fd < 0) {
        int r = err_sys(err, -errno, "open files of /proc");

        memory_guard_free(guard);
        return r;
    }
    *ret = guard;
    return 0;
}

int memory_guard_start(struct memory_guard *guard, struct err *err)
{
    int r = thread_start(&guard->worker.thread, "holt-memory", guard_main, guard);

    return r < 0 ? err_sys(err, r, "start the memory guard") : 0;
}

void memory_guard_stop(struct memory_guard *guard)
{
    if (guard)
        worker_stop(&guard->worker);
}
