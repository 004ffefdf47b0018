// SPDX-License-Identifier: Apache-2.0
#include "guest/resources_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { US_PER_TICK = 10000, MS_PER_TICK = 10 };

uint64_t resources_number(const char *text)
{
    return strtoull(text, NULL, 10);
}

/* Returns the number after a word at the start of a line; 0 if there is none. */
static uint64_t line_number(const char *text, const char *word)
{
    size_t len = strlen(word);

    for (const char *line = text; *line; line += *line == '\n') {
        if (strncmp(line, word, len) == 0 && line[len] == ' ')
            return resources_number(line + len + 1);
        line = strchrnul(line, '\n');
    }
    return 0;
}

/* With v1 the plain words are without the groups below. */
void resources_read_memory(const char *text, struct resource_state *ret)
{
    static const struct {
        const char *v1, *v2;
        size_t offset;
    } fields[] = {
        { "total_active_anon", "active_anon", offsetof(struct resource_state, anon_active) },
        { "total_inactive_anon", "inactive_anon", offsetof(struct resource_state, anon_inactive) },
        { "total_active_file", "active_file", offsetof(struct resource_state, file_active) },
        { "total_inactive_file", "inactive_file", offsetof(struct resource_state, file_inactive) },
        { "total_shmem", "shmem", offsetof(struct resource_state, shmem) },
    };
    const int is_v1 = strstr(text, "\ntotal_cache ") != NULL;

    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        *(uint64_t *)(void *)((char *)ret + fields[i].offset) =
            line_number(text, is_v1 ? fields[i].v1 : fields[i].v2);
}

void resources_read_cpu(const char *text, struct resource_state *ret)
{
    ret->usage_us = line_number(text, "usage_usec");
    ret->user_us = line_number(text, "user_usec");
    ret->system_us = line_number(text, "system_usec");
}

uint64_t resources_read_oom_kills(const char *text)
{
    return line_number(text, "oom_kill");
}

/* An exponential average; the fraction approximates e^-x, and its error is below the noise. */
void resources_load(double load[3], uint64_t passed_ms, uint64_t used_us)
{
    static const double minutes_ms[] = { 60e3, 300e3, 900e3 };
    double rate = passed_ms ? (double)used_us / 1000 / (double)passed_ms : 0;

    for (size_t i = 0; i < ARRAY_SIZE(minutes_ms); i++) {
        double x = (double)passed_ms / minutes_ms[i];
        double kept = 1 / (1 + x + x * x / 2 + x * x * x / 6);

        load[i] = load[i] * kept + rate * (1 - kept);
    }
}

void resources_meminfo(const struct resource_state *state, char *text, size_t size)
{
    uint64_t file = state->file_active + state->file_inactive;
    uint64_t anon = state->anon_active + state->anon_inactive;
    uint64_t used =
        state->memory_used < state->memory_limit ? state->memory_used : state->memory_limit;
    uint64_t free = state->memory_limit - used;
    uint64_t available = free + (file < used ? file : used);
    const struct {
        const char *name;
        uint64_t bytes;
    } lines[] = {
        { "MemTotal:", state->memory_limit },
        { "MemFree:", free },
        { "MemAvailable:", available },
        { "Buffers:", 0 },
        { "Cached:", file + state->shmem },
        { "SwapCached:", 0 },
        { "Active:", state->anon_active + state->file_active },
        { "Inactive:", state->anon_inactive + state->file_inactive },
        { "Active(anon):", state->anon_active },
        { "Inactive(anon):", state->anon_inactive },
        { "Active(file):", state->file_active },
        { "Inactive(file):", state->file_inactive },
        { "Unevictable:", 0 },
        { "Mlocked:", 0 },
        { "SwapTotal:", 0 },
        { "SwapFree:", 0 },
        { "Dirty:", 0 },
        { "Writeback:", 0 },
        { "AnonPages:", anon > state->shmem ? anon - state->shmem : 0 },
        { "Mapped:", 0 },
        { "Shmem:", state->shmem },
        { "KReclaimable:", 0 },
        { "Slab:", 0 },
        { "SReclaimable:", 0 },
        { "SUnreclaim:", 0 },
    };
    size_t used_bytes = 0;

    for (size_t i = 0; i < ARRAY_SIZE(lines) && used_bytes < size; i++)
        used_bytes += (size_t)snprintf(text + used_bytes, size - used_bytes, "%-16s%8llu kB\n",
                                       lines[i].name, (unsigned long long)lines[i].bytes / 1024);
}

void resources_loadavg(const struct resource_state *state, char *text, size_t size)
{
    (void)snprintf(text, size, "%.2f %.2f %.2f 1/%llu 0\n", state->load[0], state->load[1],
                   state->load[2], (unsigned long long)state->processes);
}

/* Each CPU gets the same share of what was used. */
void resources_stat(const struct resource_state *state, char *text, size_t size)
{
    unsigned long long user = state->user_us / US_PER_TICK, system = state->system_us / US_PER_TICK;
    unsigned long long all = state->up_ms / MS_PER_TICK * state->cpus;
    unsigned long long idle = user + system < all ? all - user - system : 0;
    size_t used =
        (size_t)snprintf(text, size, "cpu  %llu 0 %llu %llu 0 0 0 0 0 0\n", user, system, idle);

    for (uint32_t i = 0; i < state->cpus && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "cpu%u %llu 0 %llu %llu 0 0 0 0 0 0\n",
                                 i, user / state->cpus, system / state->cpus, idle / state->cpus);
    if (used < size)
        (void)snprintf(text + used, size - used,
                       "intr 0\nctxt 0\nbtime %llu\nprocesses %llu\nprocs_running 1\n"
                       "procs_blocked 0\nsoftirq 0\n",
                       (unsigned long long)state->begun_s, (unsigned long long)state->processes);
}

void resources_memory_stat(const struct resource_state *state, char *text, size_t size)
{
    uint64_t anon = state->anon_active + state->anon_inactive;
    uint64_t file = state->file_active + state->file_inactive + state->shmem;

    (void)snprintf(text, size,
                   "anon %llu\nfile %llu\nshmem %llu\ninactive_anon %llu\nactive_anon %llu\n"
                   "inactive_file %llu\nactive_file %llu\n",
                   (unsigned long long)(anon > state->shmem ? anon - state->shmem : 0),
                   (unsigned long long)file, (unsigned long long)state->shmem,
                   (unsigned long long)state->anon_inactive, (unsigned long long)state->anon_active,
                   (unsigned long long)state->file_inactive,
                   (unsigned long long)state->file_active);
}

void resources_memory_events(const struct resource_state *state, char *text, size_t size)
{
    (void)snprintf(text, size, "low 0\nhigh 0\nmax 0\noom %llu\noom_kill %llu\n",
                   (unsigned long long)state->oom_kills, (unsigned long long)state->oom_kills);
}
