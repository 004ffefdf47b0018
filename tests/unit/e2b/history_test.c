// SPDX-License-Identifier: Apache-2.0
/* What is remembered of sandboxes' use, and for how long. */
#define e2b_history_new test_e2b_history_new
#define e2b_history_free test_e2b_history_free
#define e2b_history_begin test_e2b_history_begin
#define e2b_history_read test_e2b_history_read

#include <stdio.h>

#include "../../../src/e2b/control/history.c" // NOLINT(bugprone-suspicious-include)
#include "check.h"

static struct sandbox_stats stats_of(const char *id, uint64_t round)
{
    struct sandbox_stats stats = {
        .state = SANDBOX_ACTIVE,
        .taken_ms = 1000 + round * 5000,
        .cpu_us = round * 2500 * 1000, /* half of a processor */
        .memory_bytes = round * KIB,
    };

    (void)snprintf(stats.id, sizeof(stats.id), "%s", id);
    return stats;
}

static size_t count_of(struct e2b_history *history, const char *id)
{
    size_t count = 0;

    free(e2b_history_read(history, id, 0, UINT64_MAX, &count));
    return count;
}

static void an_hour_is_remembered_oldest_first(void)
{
    struct e2b_history *history = e2b_history_new(NULL);
    size_t count = 0;

    for (uint64_t round = 0; round <= 2 * KEPT + 3; round++) {
        struct sandbox_stats stats = stats_of("sb-1", round);
        cleanup_free struct e2b_sample *samples = NULL;
        uint64_t first;

        rings_take(history, &stats, 1, true);
        samples = e2b_history_read(history, "sb-1", 0, UINT64_MAX, &count);
        CHECK(count == (round < KEPT ? round : KEPT), "%zu after %llu", count,
              (unsigned long long)round);
        first = round - count + 1;
        for (size_t i = 0; i < count; i++)
            CHECK(samples[i].memory_bytes == (first + i) * KIB && samples[i].cpu_percent == 5000);
    }
    CHECK(history->rings[0]->room == KEPT);
    free(e2b_history_read(history, "sb-1", 0, 1, &count));
    CHECK(count == 0);
    e2b_history_free(history);
}

static void who_is_gone_is_forgotten_and_who_sleeps_is_not(void)
{
    struct e2b_history *history = e2b_history_new(NULL);
    struct sandbox_stats stats[3];

    for (uint64_t round = 0; round < 3; round++) {
        stats[0] = stats_of("sb-3", round);
        stats[1] = stats_of("sb-1", round);
        stats[2] = stats_of("sb-2", round);
        stats[2].state = round == 1 ? SANDBOX_PAUSED : SANDBOX_ACTIVE;
        rings_take(history, stats, 3, false);
    }
    CHECK(count_of(history, "sb-1") == 2 && count_of(history, "sb-3") == 2);
    CHECK(count_of(history, "sb-2") == 0, "what happened while it slept is not known");
    stats[0] = stats_of("sb-1", 3);
    rings_take(history, stats, 1, false);
    CHECK(count_of(history, "sb-1") == 3);
    CHECK(history->count == 1 && count_of(history, "sb-3") == 0);
    /* The CPU time of a restarted machine starts at 0. */
    stats[0] = stats_of("sb-1", 4);
    stats[0].cpu_us = 0;
    rings_take(history, stats, 1, false);
    CHECK(count_of(history, "sb-1") == 3);
    e2b_history_free(history);
}

int main(void)
{
    RUN(an_hour_is_remembered_oldest_first);
    RUN(who_is_gone_is_forgotten_and_who_sleeps_is_not);
    return 0;
}
