// SPDX-License-Identifier: Apache-2.0
#include "host/observe/history.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/access/caller.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/machine/pool.h"
#include "host/observe/memory_guard.h"
#include "store/store.h"

enum {
    STORAGE_EVERY = 12, /* samples: some backends run a program for it */
    STAT_BYTES_MAX = 256 * 1024,
    CPU_IDLE = 3, /* columns of /proc/stat */
    CPU_IOWAIT = 4,
    CPU_COLUMNS = 8, /* the rest is counted in these */
};

struct history {
    struct host *host;
    struct worker worker;

    /* Used by the thread only. */
    struct cpu_time cpu;
    struct store_space space;
    unsigned until_storage; /* samples */

    /* Under the worker's lock: */
    struct history_sample samples[HISTORY_SAMPLES]; /* a ring */
    size_t count;
    size_t next; /* where the next one goes */
};

struct cpu_time cpu_time_parse(const char *text)
{
    struct cpu_time time = { 0 };
    const char *at = text + strlen("cpu");

    if (strncmp(text, "cpu ", strlen("cpu ")) != 0)
        return time;
    for (int column = 0; column < CPU_COLUMNS; column++) {
        char *end;
        uint64_t ticks = strtoull(at, &end, 10);

        if (end == at)
            break;
        time.total += ticks;
        if (column != CPU_IDLE && column != CPU_IOWAIT)
            time.busy += ticks;
        at = end;
    }
    return time;
}

/* The kernel may correct the idle time downwards. */
double cpu_time_share(const struct cpu_time *before, const struct cpu_time *now)
{
    if (now->total <= before->total || now->busy <= before->busy)
        return 0;
    if (now->busy - before->busy >= now->total - before->total)
        return 1;
    return (double)(now->busy - before->busy) / (double)(now->total - before->total);
}

static struct cpu_time cpu_time_read(void)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(STAT_BYTES_MAX);

    return file_read_at(AT_FDCWD, "/proc/stat", &text) < 0 || text.len == 0
               ? (struct cpu_time){ 0 }
               : cpu_time_parse(text.data);
}

static void machine_sample(struct history *history, struct history_sample *ret)
{
    struct cpu_time cpu = cpu_time_read();
    struct memory_now memory;

    ret->cpu = cpu_time_share(&history->cpu, &cpu);
    history->cpu = cpu;
    if (getloadavg(&ret->load, 1) != 1)
        ret->load = 0;
    memory_guard_read(history->host->memory_guard, &memory);
    ret->memory_total = memory.total;
    ret->memory_used = memory.total - memory.available;
}

static void storage_sample(struct history *history, struct history_sample *ret)
{
    struct err ignored;

    if (history->until_storage == 0) {
        (void)store_space(history->host->store, &history->space, &ignored);
        history->until_storage = STORAGE_EVERY;
    }
    history->until_storage--;
    ret->storage_used = history->space.used;
    ret->storage_available = history->space.available;
}

static void sandboxes_sample(struct host *host, struct history_sample *ret)
{
    struct host_census census;

    host_take_census(host, &caller_root, &census);
    for (size_t i = 0; i < ARRAY_SIZE(census.sandboxes); i++)
        ret->other += census.sandboxes[i];
    ret->active = census.sandboxes[SANDBOX_ACTIVE];
    ret->paused = census.sandboxes[SANDBOX_PAUSED] + census.sandboxes[SANDBOX_DEEP_PAUSED];
    ret->stopped = census.sandboxes[SANDBOX_STOPPED];
    ret->other -= ret->active + ret->paused + ret->stopped;
    ret->runs = census.runs;
    ret->processes = census.processes;
    ret->pool_ready = pool_ready(host->pool);
    ret->pool_size = pool_size(host->pool);
}

static void sample_take(struct history *history)
{
    struct history_sample sample = { .at_ms = clock_wall_ms() };

    machine_sample(history, &sample);
    storage_sample(history, &sample);
    sandboxes_sample(history->host, &sample);
    lock_take(&history->worker.lock);
    history->samples[history->next] = sample;
    history->next = (history->next + 1) % HISTORY_SAMPLES;
    if (history->count < HISTORY_SAMPLES)
        history->count++;
    lock_release(&history->worker.lock);
}

/* The first sample comes after a rest, as it needs the processor time of one before it. */
static void history_main(void *argument)
{
    struct history *history = argument;

    history->cpu = cpu_time_read();
    while (worker_rest(&history->worker, HISTORY_INTERVAL_MS, 0))
        sample_take(history);
}

int history_start(struct host *host, struct history **ret, struct err *err)
{
    struct history *history = xcalloc(1, sizeof(*history));
    int r;

    history->host = host;
    worker_init(&history->worker, LOCK_HISTORY);
    r = thread_start(&history->worker.thread, "holt-history", history_main, history);
    if (r < 0) {
        worker_destroy(&history->worker);
        free(history);
        return err_sys(err, r, "start the thread of the history");
    }
    *ret = history;
    return 0;
}

void history_stop(struct history *history)
{
    if (!history)
        return;
    worker_stop(&history->worker);
    worker_destroy(&history->worker);
    free(history);
}

size_t host_read_history(struct host *host, struct history_sample *ret, size_t max)
{
    struct history *history = host->history;
    size_t count;

    if (!history)
        return 0;
    lock_take(&history->worker.lock);
    count = history->count < max ? history->count : max;
    for (size_t i = 0; i < count; i++)
        ret[i] = history->samples[(history->next + HISTORY_SAMPLES - count + i) % HISTORY_SAMPLES];
    lock_release(&history->worker.lock);
    return count;
}
