// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>

static _Atomic int64_t wall_step_ms;

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t clock_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_ms(void)
{
    return read_clock(CLOCK_MONOTONIC) / NS_PER_MS;
}

uint64_t clock_wall_ms(void)
{
    int64_t step_ms = atomic_load_explicit(&wall_step_ms, memory_order_relaxed);

    return read_clock(CLOCK_REALTIME) / NS_PER_MS + (uint64_t)step_ms;
}

int64_t clock_boot_ms(void)
{
    return (int64_t)(read_clock(CLOCK_BOOTTIME) / NS_PER_MS);
}

int64_t clock_boot_of_wall(uint64_t wall_ms)
{
    return clock_boot_ms() + (int64_t)(wall_ms - clock_wall_ms());
}

void clock_step_wall(int64_t ms)
{
    (void)atomic_fetch_add(&wall_step_ms, ms);
}

uint64_t clock_after_ms(uint64_t ms)
{
    uint64_t now_ms = clock_ms();

    return ms > CLOCK_NEVER - now_ms ? CLOCK_NEVER : now_ms + ms;
}

int clock_left_ms(uint64_t deadline_ms)
{
    uint64_t now_ms = clock_ms();

    if (deadline_ms == CLOCK_NEVER)
        return -1;
    if (deadline_ms <= now_ms)
        return 0;
    return deadline_ms - now_ms > INT_MAX ? INT_MAX : (int)(deadline_ms - now_ms);
}

struct timespec clock_timespec(uint64_t ns)
{
    return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S) };
}

void clock_sleep_ms(uint64_t ms)
{
    struct timespec until = clock_timespec(clock_ns() + ms * NS_PER_MS);

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}
