// SPDX-License-Identifier: Apache-2.0
/* For LD_PRELOAD: a wall clock that a test can set, in one program only. The file that CLOCK_STEP
 * names holds the nanoseconds, as an int64_t, by which the clock is ahead.
 *
 * Waits with a timeout behave as the kernel's do when an administrator sets the clock: one of the
 * wall clock ends as soon as that clock has passed its timeout, one of the monotonic clock does not
 * notice. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)
#define RECHECK_NS INT64_C(200000)

enum { COND_IS_MONOTONIC = 2 }; /* of glibc's __wrefs */

static const _Atomic int64_t none;
static const _Atomic int64_t *step = &none;

__attribute__((constructor)) static void map_step(void)
{
    const char *path = getenv("CLOCK_STEP");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*step), PROT_READ, MAP_SHARED, fd, 0);

    if (map != MAP_FAILED)
        step = map;
    if (fd >= 0)
        (void)close(fd);
}

static int64_t to_ns(const struct timespec *time)
{
    return time->tv_sec * NS_PER_S + time->tv_nsec;
}

static struct timespec from_ns(int64_t ns)
{
    return (struct timespec){ .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
    int r = (int)syscall(SYS_clock_gettime, clock, ret);

    if (r == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        *ret = from_ns(to_ns(ret) + atomic_load(step));
    return r;
}

time_t time(time_t *ret)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (ret)
        *ret = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    *ret = (struct timeval){ .tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000 };
    return 0;
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    struct timespec now, recheck;
    int r = ETIMEDOUT;

    if (cond->__data.__wrefs & COND_IS_MONOTONIC)
        return pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, until);
    while (r == ETIMEDOUT && clock_gettime(CLOCK_REALTIME, &now) == 0 &&
           to_ns(&now) < to_ns(until)) {
        (void)clock_gettime(CLOCK_MONOTONIC, &recheck);
        recheck = from_ns(to_ns(&recheck) + RECHECK_NS);
        r = pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, &recheck);
    }
    return r;
}
