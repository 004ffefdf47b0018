/* Moments by which a call must be over, in milliseconds of CLOCK_MONOTONIC; HOLT_NO_DEADLINE is
 * never. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

int64_t deadline_now(void);

/* What poll takes: 0 when it is over, -1 for never. */
int deadline_left(int64_t deadline);

/* Waits until fd has one of these events: 1, or -ETIMEDOUT, or another -errno. */
int deadline_wait(int fd, short events, int64_t deadline);

/* Sleeps for ms, but not beyond the deadline. */
void deadline_sleep(int64_t ms, int64_t deadline);
