// SPDX-License-Identifier: Apache-2.0
#include "client/transport/deadline.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>

#include "base/clock.h"
#include "holt.h"

int64_t deadline_now(void)
{
    return (int64_t)clock_ms();
}

int64_t holt_after(int64_t ms)
{
    int64_t now = deadline_now();

    return ms < HOLT_NO_DEADLINE - now ? now + ms : HOLT_NO_DEADLINE;
}

int deadline_left(int64_t deadline)
{
    int64_t left;

    if (deadline == HOLT_NO_DEADLINE)
        return -1;
    left = deadline - deadline_now();
    if (left <= 0)
        return 0;
    return left < INT_MAX ? (int)left : INT_MAX;
}

int deadline_wait(int fd, short events, int64_t deadline)
{
    struct pollfd wait = { .fd = fd, .events = events };
    int r;

    do
        r = poll(&wait, 1, deadline_left(deadline));
    while (r < 0 && errno == EINTR);
    if (r == 0)
        return -ETIMEDOUT;
    return r < 0 ? -errno : 1;
}

void deadline_sleep(int64_t ms, int64_t deadline)
{
    int left = deadline_left(deadline);

    if (left >= 0 && ms > left)
        ms = left;
    clock_sleep_ms((uint64_t)ms);
}
