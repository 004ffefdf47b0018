/* Deadlines of calls, in milliseconds of CLOCK_MONOTONIC; HOLT_NO_DEADLINE is never. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

int64_t deadline_now(void);

/* Returns the timeout for poll: 0 if the deadline has passed, -1 for never. */
int deadline_left(int64_t deadline);

/* Waits for one of these events on fd. Returns 1, -ETIMEDOUT or another -errno. */
int deadline_wait(int fd, short events, int64_t deadline);

/* Sleeps for ms, at most until the deadline. */
void deadline_sleep(int64_t ms, int64_t deadline);
