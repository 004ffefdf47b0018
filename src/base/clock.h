/* Time. Waits and timeouts use the monotonic clock, which no administrator, NTP daemon or resume
 * of a virtual machine can set; the wall clock is for what is shown to people or kept on disk. */
#pragma once

#include <stdint.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_US UINT64_C(1000)

#define CLOCK_NEVER UINT64_MAX /* a deadline that never passes */

/* Returns the monotonic time in nanoseconds. */
uint64_t clock_ns(void);

/* Returns the monotonic time in milliseconds. */
uint64_t clock_ms(void);

/* Returns the wall time in milliseconds since 1970. */
uint64_t clock_wall_ms(void);

/* Returns the milliseconds since the machine was booted, with those in which it was suspended. */
int64_t clock_boot_ms(void);

/* Returns the moment of clock_boot_ms, perhaps a negative one, at which the wall clock shows or has
 * shown wall_ms if it is not set in between. */
int64_t clock_boot_of_wall(uint64_t wall_ms);

/* Returns the deadline (for clock_ms) that passes in `ms` milliseconds; CLOCK_NEVER where the sum
 * does not fit. */
uint64_t clock_after_ms(uint64_t ms);

/* Returns the milliseconds left until a deadline of clock_ms as poll() takes them: 0 when it has
 * passed, -1 for CLOCK_NEVER. */
int clock_left_ms(uint64_t deadline_ms);

/* Returns nanoseconds of any clock as a struct timespec. */
struct timespec clock_timespec(uint64_t ns);

/* Sleeps at least `ms` milliseconds. */
void clock_sleep_ms(uint64_t ms);

/* Moves the wall clock of this process by `ms`, for tests: clock_wall_ms is ahead by the sum of
 * all steps from then on. */
void clock_step_wall(int64_t ms);
