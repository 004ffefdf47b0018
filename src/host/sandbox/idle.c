// SPDX-License-Identifier: Apache-2.0
#include "host/sandbox/idle.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "host/core/host_internal.h"
#include "host/machine/beside.h"
#include "host/machine/machine_internal.h"
#include "host/sandbox/sandbox_internal.h"

enum {
    PIDS_BYTES_MAX = 1 << 20,
    IO_BYTES_MAX = 1024,
    PARTS = 4, /* looks at a sandbox that works, in one idle time */
    LOOK_MIN_MS = 1000,
    BUSY_US_PER_MS = 10, /* 1 % of one CPU */
};

#define IDLE_MAX_MS (INT64_MAX / 4)

/* A sum over the processes of a sandbox. */
struct io_sum {
    struct machine *machine;
    const char *group;
    uint64_t bytes;
};

static uint64_t line_number(const char *text, const char *word)
{
    const char *found = strstr(text, word);

    return found ? strtoull(found + strlen(word), NULL, 10) : 0;
}

/* A process that ended is counted by its parent, which is holt-init in the end. */
static void io_add_group(void *context, const char *child)
{
    cleanup_with(buf_done) struct buf pids = BUF_INIT(PIDS_BYTES_MAX);
    struct io_sum *sum = context;
    struct machine *machine = sum->machine;
    char *save = NULL;

    if (cgroup_read_processes(machine->host->cgroups, sum->group, child, &pids) < 0 ||
        pids.len == 0)
        return;
    for (char *line = strtok_r(pids.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        cleanup_with(buf_done) struct buf io = BUF_INIT(IO_BYTES_MAX);
        char path[48];

        (void)snprintf(path, sizeof(path), "/proc/%ld/io", strtol(line, NULL, 10));
        if (file_read_at(AT_FDCWD, path, &io) < 0 || io.len == 0)
            continue;
        sum->bytes += line_number(io.data, "\nread_bytes: ");
        sum->bytes += line_number(io.data, "\nwrite_bytes: ");
    }
}

static struct idle_sample sample_take(struct machine *machine)
{
    struct idle_sample sample = { .after = clock_boot_ms() };
    struct io_sum sum = { .machine = machine, .group = machine->id };
    char second[RUNTIME_ID_MAX];
    struct cgroup_usage usage;

    cgroup_read_usage(machine->host->cgroups, machine->id, machine->guest.limits_group, &usage);
    io_add_group(&sum, "init");
    (void)cgroup_list_children(machine->host->cgroups, machine->id, io_add_group, &sum);
    machine_beside_id(machine->id, second);
    sum.group = second; /* without processes if there is no second machine */
    (void)cgroup_list_children(machine->host->cgroups, second, io_add_group, &sum);
    sample.cpu_us = usage.cpu_us;
    sample.io_bytes = sum.bytes;
    sample.before = clock_boot_ms();
    return sample;
}

static void sample_keep(struct idle_watch *watch, const struct idle_sample *sample)
{
    if (watch->count == IDLE_SAMPLES) {
        memmove(watch->samples, watch->samples + 1, sizeof(*sample) * (IDLE_SAMPLES - 1));
        watch->count--;
    }
    watch->samples[watch->count++] = *sample;
}

/* Returns the latest sample that is about as old as the idle time, or NULL. It may be a little
 * younger, because this thread looks some time after a client has left. */
static const struct idle_sample *sample_of_window(const struct idle_watch *watch, int64_t now,
                                                  int64_t timeout_ms)
{
    for (unsigned i = watch->count; i-- > 0;)
        if (now - watch->samples[i].before >= timeout_ms - timeout_ms / PARTS)
            return &watch->samples[i];
    return NULL;
}

static bool is_work(const struct idle_sample *from, const struct idle_sample *to)
{
    return (int64_t)(to->cpu_us - from->cpu_us) >= (to->after - from->before) * BUSY_US_PER_MS ||
           to->io_bytes > from->io_bytes;
}

/* The idle time is over for clients. */
static void window_look(struct idle_watch *watch, struct machine *machine, int64_t now,
                        int64_t timeout_ms)
{
    const struct idle_sample *from = sample_of_window(watch, now, timeout_ms);
    struct idle_sample sample;

    if (!from) {
        watch->is_working = true; /* unknown */
        watch->check_at = watch->samples[0].before + timeout_ms - timeout_ms / PARTS;
        return;
    }
    sample = sample_take(machine);
    watch->is_working =
        is_work(from, &sample) || atomic_load(&machine->net_active_ms) > from->before;
    watch->check_at = now + (timeout_ms / PARTS > LOOK_MIN_MS ? timeout_ms / PARTS : LOOK_MIN_MS);
    sample_keep(watch, &sample);
}

/* Returns a reference to the machine if an idle time runs, otherwise NULL. */
static struct machine *watched_machine(struct sandbox *sandbox, int64_t *ret_active,
                                       int64_t *ret_timeout_ms)
{
    lock_scope(&sandbox->lock);

    if (sandbox->info.idle_timeout_ms == 0 || sandbox->info.idle_timeout_ms > IDLE_MAX_MS ||
        sandbox->attached > 0 || sandbox->starting > 0 || sandbox->operation != OPERATION_NONE ||
        !sandbox->machine)
        return NULL;
    *ret_active = sandbox->times.active;
    *ret_timeout_ms = (int64_t)sandbox->info.idle_timeout_ms;
    return machine_ref(sandbox->machine);
}

void idle_look(struct sandbox *sandbox, int64_t now, uint64_t *wait_ms)
{
    struct idle_watch *watch = &sandbox->idle;
    int64_t active = 0, timeout_ms = 0;
    struct machine *machine = watched_machine(sandbox, &active, &timeout_ms);

    if (!machine) {
        watch->count = 0;
        watch->is_working = false;
        return;
    }
    if (watch->count == 0 || watch->samples[watch->count - 1].after < active) {
        watch->count = 0;
        watch->is_working = false;
        watch->check_at = 0;
        watch->samples[watch->count++] = sample_take(machine);
    }
    if (now - active >= timeout_ms && now >= watch->check_at)
        window_look(watch, machine, now, timeout_ms);
    machine_unref(machine);
    if (watch->is_working && watch->check_at > now && (uint64_t)(watch->check_at - now) < *wait_ms)
        *wait_ms = (uint64_t)(watch->check_at - now);
}
