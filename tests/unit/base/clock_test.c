// SPDX-License-Identifier: Apache-2.0
#include <limits.h>

#include "base/clock.h"
#include "check.h"

static void the_monotonic_clock_never_goes_back(void)
{
    uint64_t before_ns = clock_ns(), before_ms = clock_ms();

    for (int i = 0; i < 1000; i++) {
        uint64_t now_ns = clock_ns();

        CHECK(now_ns >= before_ns);
        before_ns = now_ns;
    }
    CHECK(clock_ms() >= before_ms && clock_ms() <= clock_ns() / 1000000);
}

static void a_step_of_the_wall_clock_moves_no_deadline(void)
{
    const int64_t hour_ms = INT64_C(3600000);
    uint64_t deadline = clock_after_ms(60000), wall = clock_wall_ms();

    clock_step_wall(hour_ms);
    CHECK(clock_wall_ms() >= wall + 3600000 && clock_wall_ms() < wall + 3660000);
    CHECK(clock_left_ms(deadline) > 50000 && clock_left_ms(deadline) <= 60000);
    clock_step_wall(-2 * hour_ms);
    CHECK(clock_wall_ms() < wall);
    CHECK(clock_left_ms(deadline) > 50000 && clock_left_ms(deadline) <= 60000);
    clock_step_wall(hour_ms);
    CHECK(clock_wall_ms() >= wall);
}

static void deadlines_are_what_poll_takes(void)
{
    CHECK(clock_left_ms(CLOCK_NEVER) == -1);
    CHECK(clock_left_ms(0) == 0);
    CHECK(clock_left_ms(clock_ms()) == 0);
    CHECK(clock_left_ms(CLOCK_NEVER - 1) == INT_MAX);
    CHECK(clock_after_ms(UINT64_MAX) == CLOCK_NEVER);
    CHECK(clock_after_ms(0) <= clock_ms());
}

static void a_sleep_lasts_as_long_as_asked(void)
{
    uint64_t before = clock_ns();

    clock_sleep_ms(20);
    CHECK(clock_ns() - before >= UINT64_C(20000000));
}

static void nanoseconds_become_a_timespec(void)
{
    struct timespec moment = clock_timespec(UINT64_C(1234567890123));

    CHECK(moment.tv_sec == 1234 && moment.tv_nsec == 567890123);
}

int main(void)
{
    RUN(the_monotonic_clock_never_goes_back);
    RUN(a_step_of_the_wall_clock_moves_no_deadline);
    RUN(deadlines_are_what_poll_takes);
    RUN(a_sleep_lasts_as_long_as_asked);
    RUN(nanoseconds_become_a_timespec);
    return 0;
}
