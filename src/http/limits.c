// SPDX-License-Identifier: Apache-2.0
#include "http/limits.h"

#include <malloc.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/lock.h"
#include "base/err.h"
#include "base/xalloc.h"

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

enum {
    TICK_MS = 1000, /* how late a cut may be; deadlines are met to the moment */
    MANY = 64,      /* connections, that leave memory behind */
};

struct guarded {
    struct guarded *next, **slot; /* of the list; slot points at us */
    struct guard *guard;
    int fd;
    struct in6_addr address; /* of the client; zero where there are none */
    atomic_uint_fast64_t cut_ns;
    atomic_uint_fast64_t deadline_ns;
    atomic_bool is_stream;
};

struct guard {
    pthread_t thread;
    atomic_uint_fast64_t wake_ns; /* when the thread will look again; GUARD_FOREVER: it looks */

    struct lock lock; /* over everything below */
    pthread_cond_t changed;
    struct guarded *first;
    size_t count;
    size_t crowd; /* from how many on a new one pushes another out */
    size_t share; /* the same of one address; 0: any number */
    size_t peak;  /* most at a time since memory was last given back */
    bool is_stopping;
};

static atomic_uint connections; /* of the process, as call_stats are */

unsigned guard_count(void)
{
    return atomic_load(&connections);
}

uint64_t guard_clock_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Waits see a hang-up (POLLRDHUP) once the reading half is shut down, and the client is none the
 * wiser. */
static void deadline_pass(struct guarded *guarded, uint64_t now)
{
    atomic_store(&guarded->deadline_ns, GUARD_FOREVER);
    if (atomic_load(&guarded->is_stream))
        atomic_store(&guarded->cut_ns, now + GUARD_LATE_MS * NS_PER_MS);
    (void)shutdown(guarded->fd, SHUT_RD);
}

/* Looks at one connection; returns its next deadline. */
static uint64_t look_at(struct guarded *guarded, uint64_t now)
{
    if (atomic_load(&guarded->deadline_ns) <= now)
        deadline_pass(guarded, now);
    if (atomic_load(&guarded->cut_ns) <= now) {
        atomic_store(&guarded->cut_ns, GUARD_FOREVER);
        (void)shutdown(guarded->fd, SHUT_RDWR);
    }
    return atomic_load(&guarded->deadline_ns);
}

/* Locked. Whoever sets a deadline meanwhile finds that we look, and waits for the lock. */
static uint64_t look_around(struct guard *guard)
{
    uint64_t now = guard_clock_ns();
    uint64_t next = guard->first ? now + TICK_MS * NS_PER_MS : GUARD_FOREVER - 1;

    atomic_store(&guard->wake_ns, GUARD_FOREVER);
    for (struct guarded *each = guard->first; each; each = each->next) {
        uint64_t deadline = look_at(each, now);

        if (deadline < next)
            next = deadline;
    }
    atomic_store(&guard->wake_ns, next);
    return next;
}

/* When a crowd has gone, its memory goes too: the C library would keep what its threads had used.
 * Locked. */
static void tidy_up(struct guard *guard)
{
    if (guard->peak < MANY || guard->count > guard->peak / 4)
        return;
    guard->peak = guard->count;
    (void)malloc_trim(0);
}

static void *guard_main(void *argument)
{
    struct guard *guard = argument;

    lock_take(&guard->lock);
    while (!guard->is_stopping) {
        uint64_t wake = look_around(guard);
        struct timespec until = { .tv_sec = (time_t)(wake / NS_PER_S),
                                  .tv_nsec = (long)(wake % NS_PER_S) };

        tidy_up(guard);
        if (guard->first)
            (void)pthread_cond_timedwait(&guard->changed, &guard->lock.mutex, &until);
        else
            (void)pthread_cond_wait(&guard->changed, &guard->lock.mutex);
    }
    lock_release(&guard->lock);
    return NULL;
}

static void guard_free(struct guard *guard)
{
    (void)pthread_cond_destroy(&guard->changed);
    lock_destroy(&guard->lock);
    free(guard);
}

int guard_start(size_t crowd, size_t share, struct guard **ret, struct err *err)
{
    struct guard *guard = xcalloc(1, sizeof(*guard));
    pthread_condattr_t attr;
    int r;

    guard->crowd = crowd;
    guard->share = share;
    lock_init(&guard->lock, LOCK_CONNECTION_LIMITS);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&guard->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    r = pthread_create(&guard->thread, NULL, guard_main, guard);
    if (r != 0) {
        guard_free(guard);
        return err_sys(err, -r, "start a thread that looks after connections");
    }
    *ret = guard;
    return 0;
}

static void guard_wake(struct guard *guard)
{
    lock_take(&guard->lock);
    (void)pthread_cond_signal(&guard->changed);
    lock_release(&guard->lock);
}

void guard_stop(struct guard *guard)
{
    if (!guard)
        return;
    lock_take(&guard->lock);
    guard->is_stopping = true;
    (void)pthread_cond_signal(&guard->changed);
    lock_release(&guard->lock);
    (void)pthread_join(guard->thread, NULL);
    guard_free(guard);
}

static struct in6_addr address_of(int fd)
{
    struct sockaddr_storage storage = { 0 };
    socklen_t len = sizeof(storage);
    struct in6_addr address = { 0 };

    if (getpeername(fd, (struct sockaddr *)&storage, &len) < 0)
        return address;
    if (storage.ss_family == AF_INET6)
        address = ((const struct sockaddr_in6 *)&storage)->sin6_addr;
    if (storage.ss_family == AF_INET)
        memcpy(&address, &((const struct sockaddr_in *)&storage)->sin_addr, sizeof(struct in_addr));
    return address;
}

static bool is_neighbour(const struct guarded *one, const struct guarded *other)
{
    return memcmp(&one->address, &other->address, sizeof(one->address)) == 0;
}

/* Locked. */
static bool has_its_share(const struct guard *guard, const struct guarded *new)
{
    size_t count = 0;

    for (const struct guarded *each = guard->first; guard->share > 0 && each; each = each->next)
        count += is_neighbour(each, new);
    return guard->share > 0 && count >= guard->share;
}

/* Cuts the one that would be cut next anyway: who has not finished a header yet rather than who has
 * been served, and nobody who is being served. of: only those of its address. Locked. */
static void make_room(struct guard *guard, const struct guarded *of)
{
    struct guarded *next = NULL;
    uint64_t earliest = GUARD_FOREVER;

    for (struct guarded *each = guard->first; each; each = each->next) {
        uint64_t cut = atomic_load(&each->cut_ns);

        if (cut < earliest && (!of || is_neighbour(each, of))) {
            earliest = cut;
            next = each;
        }
    }
    if (!next)
        return;
    atomic_store(&next->cut_ns, GUARD_FOREVER);
    (void)shutdown(next->fd, SHUT_RDWR);
}

void guard_drain(struct guard *guard)
{
    lock_take(&guard->lock);
    for (const struct guarded *each = guard->first; each; each = each->next)
        (void)shutdown(each->fd, SHUT_RD);
    lock_release(&guard->lock);
}

void guard_await_empty(struct guard *guard, uint64_t until_ns)
{
    const struct timespec pause = { .tv_nsec = 2 * NS_PER_MS };
    bool is_empty = false;

    while (!is_empty && guard_clock_ns() < until_ns) {
        lock_take(&guard->lock);
        is_empty = !guard->first;
        lock_release(&guard->lock);
        if (!is_empty)
            (void)nanosleep(&pause, NULL);
    }
}

struct guarded *guard_add(struct guard *guard, int fd)
{
    struct guarded *guarded = xcalloc(1, sizeof(*guarded));

    atomic_fetch_add(&connections, 1);
    guarded->guard = guard;
    guarded->fd = fd;
    guarded->address = address_of(fd);
    atomic_store(&guarded->deadline_ns, GUARD_FOREVER);
    guarded_allow(guarded, GUARD_FIRST_MS);
    lock_take(&guard->lock);
    if (has_its_share(guard, guarded))
        make_room(guard, guarded);
    if (++guard->count > guard->crowd)
        make_room(guard, NULL);
    if (guard->count > guard->peak)
        guard->peak = guard->count;
    guarded->next = guard->first;
    guarded->slot = &guard->first;
    if (guard->first)
        guard->first->slot = &guarded->next;
    else
        (void)pthread_cond_signal(&guard->changed);
    guard->first = guarded;
    lock_release(&guard->lock);
    return guarded;
}

void guard_remove(struct guard *guard, struct guarded *guarded)
{
    if (!guarded)
        return;
    lock_take(&guard->lock);
    guard->count--;
    *guarded->slot = guarded->next;
    if (guarded->next)
        guarded->next->slot = guarded->slot;
    lock_release(&guard->lock);
    atomic_fetch_sub(&connections, 1);
    free(guarded);
}

/* Nobody is woken for this: what is allowed is always more than a tick. */
void guarded_allow(struct guarded *guarded, uint64_t ms)
{
    atomic_store(&guarded->cut_ns,
                 ms == GUARD_FOREVER ? GUARD_FOREVER : guard_clock_ns() + ms * NS_PER_MS);
}

void guarded_extend(struct guarded *guarded, uint64_t bytes)
{
    uint64_t cut = atomic_load(&guarded->cut_ns);

    if (cut != GUARD_FOREVER)
        atomic_store(&guarded->cut_ns, cut + bytes * (NS_PER_S / GUARD_BYTES_PER_S));
}

void guarded_set_deadline(struct guarded *guarded, uint64_t deadline_ns, bool is_stream)
{
    atomic_store(&guarded->is_stream, is_stream);
    atomic_store(&guarded->deadline_ns, deadline_ns);
    if (deadline_ns < atomic_load(&guarded->guard->wake_ns))
        guard_wake(guarded->guard);
}
