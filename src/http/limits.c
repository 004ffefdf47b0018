// SPDX-License-Identifier: Apache-2.0
#include "http/limits.h"

#include <malloc.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/thread.h"
#include "base/xalloc.h"

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

enum {
    TICK_MS = 1000, /* how late a cut may be; deadlines are met to the moment */
    MANY = 64,      /* connections, that leave memory behind */
};

struct client_connection {
    struct client_connection *next, **slot; /* of the list; slot points at us */
    struct connection_limits *limits;
    int fd;
    struct in6_addr address; /* of the client; zero where there are none */
    atomic_uint_fast64_t cut_ns;
    atomic_uint_fast64_t deadline_ns;
    atomic_bool is_stream;
};

struct connection_limits {
    struct worker worker;
    atomic_uint_fast64_t
        wake_ns; /* when the thread will look again; CONNECTION_FOREVER: it looks */

    /* Under the worker's lock: */
    struct client_connection *first;
    size_t count;
    size_t crowd; /* from how many on a new one pushes another out */
    size_t share; /* the same of one address; 0: any number */
    size_t peak;  /* most at a time since memory was last given back */
};

static atomic_uint connections; /* of the process, as call_stats are */

unsigned connection_limits_count(void)
{
    return atomic_load(&connections);
}

/* Waits see a hang-up (POLLRDHUP) once the reading half is shut down, and the client is none the
 * wiser. */
static void deadline_pass(struct client_connection *client, uint64_t now)
{
    atomic_store(&client->deadline_ns, CONNECTION_FOREVER);
    if (atomic_load(&client->is_stream))
        atomic_store(&client->cut_ns, now + CONNECTION_LATE_MS * NS_PER_MS);
    (void)shutdown(client->fd, SHUT_RD);
}

/* Looks at one connection; returns its next deadline. */
static uint64_t look_at(struct client_connection *client, uint64_t now)
{
    if (atomic_load(&client->deadline_ns) <= now)
        deadline_pass(client, now);
    if (atomic_load(&client->cut_ns) <= now) {
        atomic_store(&client->cut_ns, CONNECTION_FOREVER);
        (void)shutdown(client->fd, SHUT_RDWR);
    }
    return atomic_load(&client->deadline_ns);
}

/* Locked. Whoever sets a deadline meanwhile finds that we look, and waits for the lock. */
static uint64_t look_around(struct connection_limits *limits)
{
    uint64_t now = clock_ns();
    uint64_t next = limits->first ? now + TICK_MS * NS_PER_MS : CONNECTION_FOREVER - 1;

    atomic_store(&limits->wake_ns, CONNECTION_FOREVER);
    for (struct client_connection *each = limits->first; each; each = each->next) {
        uint64_t deadline = look_at(each, now);

        if (deadline < next)
            next = deadline;
    }
    atomic_store(&limits->wake_ns, next);
    return next;
}

/* When a crowd has gone, its memory goes too: the C library would keep what its threads had used.
 * Locked. */
static void tidy_up(struct connection_limits *limits)
{
    if (limits->peak < MANY || limits->count > limits->peak / 4)
        return;
    limits->peak = limits->count;
    (void)malloc_trim(0);
}

static void connection_limits_main(void *argument)
{
    struct connection_limits *limits = argument;
    lock_scope(&limits->worker.lock);

    while (!limits->worker.is_stopping) {
        uint64_t wake_ns = look_around(limits);

        tidy_up(limits);
        if (limits->first)
            (void)cond_wait_until_ns(&limits->worker.changed, &limits->worker.lock, wake_ns);
        else
            cond_wait(&limits->worker.changed, &limits->worker.lock);
    }
}

static void connection_limits_free(struct connection_limits *limits)
{
    worker_destroy(&limits->worker);
    free(limits);
}

int connection_limits_start(size_t crowd, size_t share, struct connection_limits **ret,
                            struct err *err)
{
    struct connection_limits *limits = xcalloc(1, sizeof(*limits));
    int r;

    limits->crowd = crowd;
    limits->share = share;
    worker_init(&limits->worker, LOCK_CONNECTION_LIMITS);
    r = thread_start(&limits->worker.thread, "holt-limits", connection_limits_main, limits);
    if (r < 0) {
        connection_limits_free(limits);
        return err_sys(err, r, "start a thread that looks after connections");
    }
    *ret = limits;
    return 0;
}

static void connection_limits_wake(struct connection_limits *limits)
{
    lock_scope(&limits->worker.lock);

    cond_signal(&limits->worker.changed);
}

void connection_limits_stop(struct connection_limits *limits)
{
    if (!limits)
        return;
    worker_stop(&limits->worker);
    connection_limits_free(limits);
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

static bool is_neighbour(const struct client_connection *one, const struct client_connection *other)
{
    return memcmp(&one->address, &other->address, sizeof(one->address)) == 0;
}

/* Locked. */
static bool has_its_share(const struct connection_limits *limits,
                          const struct client_connection *new)
{
    size_t count = 0;

    for (const struct client_connection *each = limits->first; limits->share > 0 && each;
         each = each->next)
        count += is_neighbour(each, new);
    return limits->share > 0 && count >= limits->share;
}

/* Cuts the one that would be cut next anyway: who has not finished a header yet rather than who has
 * been served, and nobody who is being served. of: only those of its address. Locked. */
static void make_room(struct connection_limits *limits, const struct client_connection *of)
{
    struct client_connection *next = NULL;
    uint64_t earliest = CONNECTION_FOREVER;

    for (struct client_connection *each = limits->first; each; each = each->next) {
        uint64_t cut = atomic_load(&each->cut_ns);

        if (cut < earliest && (!of || is_neighbour(each, of))) {
            earliest = cut;
            next = each;
        }
    }
    if (!next)
        return;
    atomic_store(&next->cut_ns, CONNECTION_FOREVER);
    (void)shutdown(next->fd, SHUT_RDWR);
}

void connection_limits_drain(struct connection_limits *limits)
{
    lock_take(&limits->worker.lock);
    for (const struct client_connection *each = limits->first; each; each = each->next)
        (void)shutdown(each->fd, SHUT_RD);
    lock_release(&limits->worker.lock);
}

void connection_limits_await_empty(struct connection_limits *limits, uint64_t until_ns)
{
    const struct timespec pause = { .tv_nsec = 2 * NS_PER_MS };
    bool is_empty = false;

    while (!is_empty && clock_ns() < until_ns) {
        lock_take(&limits->worker.lock);
        is_empty = !limits->first;
        lock_release(&limits->worker.lock);
        if (!is_empty)
            (void)nanosleep(&pause, NULL);
    }
}

struct client_connection *connection_limits_add(struct connection_limits *limits, int fd)
{
    struct client_connection *client = xcalloc(1, sizeof(*client));

    atomic_fetch_add(&connections, 1);
    client->limits = limits;
    client->fd = fd;
    client->address = address_of(fd);
    atomic_store(&client->deadline_ns, CONNECTION_FOREVER);
    client_connection_allow(client, CONNECTION_FIRST_MS);
    lock_take(&limits->worker.lock);
    if (has_its_share(limits, client))
        make_room(limits, client);
    if (++limits->count > limits->crowd)
        make_room(limits, NULL);
    if (limits->count > limits->peak)
        limits->peak = limits->count;
    client->next = limits->first;
    client->slot = &limits->first;
    if (limits->first)
        limits->first->slot = &client->next;
    else
        cond_signal(&limits->worker.changed);
    limits->first = client;
    lock_release(&limits->worker.lock);
    return client;
}

void connection_limits_remove(struct connection_limits *limits, struct client_connection *client)
{
    if (!client)
        return;
    lock_take(&limits->worker.lock);
    limits->count--;
    *client->slot = client->next;
    if (client->next)
        client->next->slot = client->slot;
    lock_release(&limits->worker.lock);
    atomic_fetch_sub(&connections, 1);
    free(client);
}

/* Nobody is woken for this: what is allowed is always more than a tick. */
void client_connection_allow(struct client_connection *client, uint64_t ms)
{
    atomic_store(&client->cut_ns,
                 ms == CONNECTION_FOREVER ? CONNECTION_FOREVER : clock_ns() + ms * NS_PER_MS);
}

void client_connection_extend(struct client_connection *client, uint64_t bytes)
{
    uint64_t cut = atomic_load(&client->cut_ns);

    if (cut != CONNECTION_FOREVER)
        atomic_store(&client->cut_ns, cut + bytes * (NS_PER_S / CONNECTION_BYTES_PER_S));
}

void client_connection_set_deadline(struct client_connection *client, uint64_t deadline_ns,
                                    bool is_stream)
{
    atomic_store(&client->is_stream, is_stream);
    atomic_store(&client->deadline_ns, deadline_ns);
    if (deadline_ns < atomic_load(&client->limits->wake_ns))
        connection_limits_wake(client->limits);
}
