// SPDX-License-Identifier: Apache-2.0
#include "e2b/control/history.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "host/core/reactor.h"
#include "host/observe/stats.h"

enum {
    KEPT = 3600 / E2B_HISTORY_STEP_S,
    KEPT_AT_FIRST = 12,
    SPACE_ROUNDS = 60 / E2B_HISTORY_STEP_S, /* the storage may take a while to answer */
    KIB = 1024,
};

/* Small, because there are many. */
struct slot {
    uint32_t at_s;
    uint32_t cpu_percent;
    uint32_t memory_kib, cache_kib, disk_kib;
};

/* Of one sandbox. */
struct ring {
    char id[SANDBOX_ID_MAX];
    bool was_seen;   /* in this round */
    bool has_cpu;    /* what a processor did is known only between two looks */
    uint64_t cpu_us; /* at the last look */
    uint64_t taken_ms;
    uint32_t disk_kib;
    size_t count, next, room; /* in slots; next is the oldest where all are used */
    struct slot *slots;
};

struct e2b_history {
    struct host *host;
    struct worker worker;
    struct ring **rings; /* by id; under the worker's lock, as the count */
    size_t count;
};

static void ring_free(struct ring *ring)
{
    free(ring->slots);
    free(ring);
}

static int compare_rings(const void *a, const void *b)
{
    const struct ring *const *left = a, *const *right = b;

    return strcmp((*left)->id, (*right)->id);
}

/* Locked. */
static struct ring *ring_find(const struct e2b_history *history, size_t count, const char *id)
{
    struct ring wanted = { .id = "" }, *key = &wanted, **found;

    (void)memccpy(wanted.id, id, '\0', sizeof(wanted.id) - 1);
    if (count == 0)
        return NULL;
    found = bsearch(&key, history->rings, count, sizeof(*history->rings), compare_rings);
    return found ? *found : NULL;
}

static void ring_grow(struct ring *ring)
{
    size_t room = ring->room ? 2 * ring->room : KEPT_AT_FIRST;
    struct slot *slots;

    room = room < KEPT ? room : KEPT;
    slots = xcalloc(room, sizeof(*slots));
    if (ring->count > 0)
        memcpy(slots, ring->slots, ring->count * sizeof(*slots));
    free(ring->slots);
    ring->slots = slots;
    ring->room = room;
}

/* A ring that is not full yet has its slots in order and next at its end. */
static void ring_add(struct ring *ring, struct slot slot)
{
    if (ring->next == ring->room && ring->room < KEPT)
        ring_grow(ring);
    if (ring->next == ring->room)
        ring->next = 0;
    ring->slots[ring->next++] = slot;
    if (ring->count < ring->room)
        ring->count++;
}

static uint32_t kib(uint64_t bytes)
{
    return bytes / KIB < UINT32_MAX ? (uint32_t)(bytes / KIB) : UINT32_MAX;
}

static void ring_take(struct ring *ring, const struct sandbox_stats *stats, uint64_t now_s,
                      bool has_space)
{
    bool had_cpu = ring->has_cpu && stats->cpu_us >= ring->cpu_us;
    uint64_t ms = stats->taken_ms - ring->taken_ms, us = stats->cpu_us - ring->cpu_us;

    ring->was_seen = true;
    ring->has_cpu = stats->state == SANDBOX_ACTIVE;
    ring->cpu_us = stats->cpu_us;
    ring->taken_ms = stats->taken_ms;
    if (has_space)
        ring->disk_kib = kib(stats->space_used);
    if (!ring->has_cpu || !had_cpu || ms == 0)
        return;
    ring_add(ring, (struct slot){ .at_s = (uint32_t)now_s,
                                  .cpu_percent = (uint32_t)(us * 10 / ms),
                                  .memory_kib = kib(stats->memory_bytes),
                                  .cache_kib = kib(stats->cache_bytes),
                                  .disk_kib = ring->disk_kib });
}

/* Forgets sandboxes that no longer exist. Needs the lock. */
static void rings_prune(struct e2b_history *history)
{
    size_t kept = 0;

    for (size_t i = 0; i < history->count; i++) {
        struct ring *ring = history->rings[i];

        if (!ring->was_seen) {
            ring_free(ring);
            continue;
        }
        ring->was_seen = false;
        history->rings[kept++] = ring;
    }
    history->count = kept;
}

/* Locked. */
static void rings_take(struct e2b_history *history, const struct sandbox_stats *stats, size_t count,
                       bool has_space)
{
    uint64_t now_s = clock_wall_ms() / 1000;
    size_t known = history->count;
    struct ring **rings = xcalloc(known + count + 1, sizeof(struct ring *));

    now_s -= now_s % E2B_HISTORY_STEP_S;
    if (known > 0)
        memcpy(rings, history->rings, known * sizeof(struct ring *));
    free(history->rings);
    history->rings = rings;
    for (size_t i = 0; i < count; i++) {
        struct ring *ring = ring_find(history, known, stats[i].id);

        if (!ring) {
            ring = xcalloc(1, sizeof(*ring));
            memcpy(ring->id, stats[i].id, sizeof(ring->id));
            ring->disk_kib = kib(stats[i].space_used);
            history->rings[history->count++] = ring;
        }
        ring_take(ring, &stats[i], now_s, has_space);
    }
    rings_prune(history);
    if (history->count > 0)
        qsort(history->rings, history->count, sizeof(struct ring *), compare_rings);
}

static void look(struct e2b_history *history, bool wants_space)
{
    const struct stats_query query = { .caller = &caller_root, .wants_space = wants_space };
    cleanup_free struct sandbox_stats *stats = NULL;
    size_t count = 0;
    struct err ignored;

    if (sandbox_list_stats(history->host, &query, &stats, &count, &ignored) < 0)
        return;
    lock_take(&history->worker.lock);
    rings_take(history, stats, count, wants_space);
    lock_release(&history->worker.lock);
}

/* Samples at every full five seconds. */
static void history_main(void *argument)
{
    const uint64_t step_ms = E2B_HISTORY_STEP_S * UINT64_C(1000);
    struct e2b_history *history = argument;
    unsigned round = 0;

    do
        look(history, round++ % SPACE_ROUNDS == 0);
    while (worker_rest(&history->worker, step_ms - clock_wall_ms() % step_ms, 0));
}

struct e2b_history *e2b_history_new(struct host *host)
{
    struct e2b_history *history = xcalloc(1, sizeof(*history));

    history->host = host;
    worker_init(&history->worker, LOCK_E2B_HISTORY);
    return history;
}

void e2b_history_begin(struct e2b_history *history)
{
    struct worker *worker = &history->worker;
    int r = 0;

    lock_take(&worker->lock);
    if (!worker->thread.is_started && !worker->is_stopping)
        r = thread_start(&worker->thread, "holt-history", history_main, history);
    lock_release(&worker->lock);
    if (r < 0)
        log_warn("what sandboxes use is not written down: %s", strerror(-r));
}

void e2b_history_free(struct e2b_history *history)
{
    if (!history)
        return;
    worker_stop(&history->worker);
    for (size_t i = 0; i < history->count; i++)
        ring_free(history->rings[i]);
    free(history->rings);
    worker_destroy(&history->worker);
    free(history);
}

static struct e2b_sample sample_of(const struct slot *slot)
{
    return (struct e2b_sample){ .at_s = slot->at_s,
                                .cpu_percent = slot->cpu_percent,
                                .memory_bytes = (uint64_t)slot->memory_kib * KIB,
                                .cache_bytes = (uint64_t)slot->cache_kib * KIB,
                                .disk_bytes = (uint64_t)slot->disk_kib * KIB };
}

struct e2b_sample *e2b_history_read(struct e2b_history *history, const char *sandbox,
                                    uint64_t start_s, uint64_t end_s, size_t *ret_count)
{
    struct e2b_sample *samples = xcalloc(KEPT, sizeof(*samples));
    const struct ring *ring;
    size_t count = 0;

    lock_take(&history->worker.lock);
    ring = ring_find(history, history->count, sandbox);
    for (size_t i = 0; ring && i < ring->count; i++) {
        const struct slot *slot =
            &ring->slots[(ring->next + ring->room - ring->count + i) % ring->room];

        if (slot->at_s >= start_s && slot->at_s <= end_s)
            samples[count++] = sample_of(slot);
    }
    lock_release(&history->worker.lock);
    *ret_count = count;
    return samples;
}
