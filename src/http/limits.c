// SPDX-License-Identifier: Apache-2.0
#include "http/limits.h"

#include <malloc.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/access/caller.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/thread.h"
#include "base/xalloc.h"

enum {
    TICK_MS = 500, /* how late a connection may be closed; deadlines are exact */
    MANY = 64,     /* connections after which memory is worth returning */
};

struct client_connection {
    struct client_connection *next, **slot; /* in the list; slot points to this one */
    struct connection_limits *limits;
    int fd;
    struct in6_addr address; /* of the client; zero on a unix socket */
    atomic_uint_fast64_t cut_ns;
    uint64_t end_ns; /* as cut_ns, of a call whose token has ended; under the worker's lock */
    atomic_uint_fast64_t deadline_ns;
    atomic_bool is_stream;
    char token[CALLER_TOKEN_MAX +
               1]; /* changed under the worker's lock by the connection's thread */
};

struct connection_limits {
    struct worker worker;
    atomic_uint_fast64_t wake_ns; /* when the thread wakes next; CONNECTION_FOREVER: it is awake */

    /* Under the worker's lock: */
    struct client_connection *first;
    size_t count;
    struct connection_rules rules;
    size_t peak; /* highest count since memory was last returned */
};

static atomic_uint connections; /* of all listeners */

unsigned connection_limits_count(void)
{
    return atomic_load(&connections);
}

/* Shutting down the reading half wakes every poll for POLLRDHUP; the client does not notice. */
static void deadline_pass(struct client_connection *client, uint64_t now)
{
    atomic_store(&client->deadline_ns, CONNECTION_FOREVER);
    if (atomic_load(&client->is_stream))
        atomic_store(&client->cut_ns, now + CONNECTION_LATE_MS * NS_PER_MS);
    (void)shutdown(client->fd, SHUT_RD);
}

/* Ends the call of a token that was removed or has expired. The call may still set cut_ns, but
 * cannot move its end. */
static void token_check(struct client_connection *client, uint64_t now)
{
    const struct connection_rules *rules = &client->limits->rules;

    if (client->token[0] == '\0' || rules->is_token_valid(rules->context, client->token))
        return;
    client->token[0] = '\0';
    client->end_ns = now + CONNECTION_LATE_MS * NS_PER_MS;
    (void)shutdown(client->fd, SHUT_RD);
}

/* Applies the limits of one connection and returns its next deadline. */
static uint64_t connection_check(struct client_connection *client, uint64_t now)
{
    token_check(client, now);
    if (atomic_load(&client->deadline_ns) <= now)
        deadline_pass(client, now);
    if (atomic_load(&client->cut_ns) <= now || client->end_ns <= now) {
        atomic_store(&client->cut_ns, CONNECTION_FOREVER);
        client->end_ns = CONNECTION_FOREVER;
        (void)shutdown(client->fd, SHUT_RDWR);
    }
    return atomic_load(&client->deadline_ns);
}

/* Needs the lock. A thread that sets a deadline meanwhile sees CONNECTION_FOREVER in wake_ns, and
 * waits for the lock to wake this thread. */
static uint64_t connections_check(struct connection_limits *limits)
{
    uint64_t now = clock_ns();
    uint64_t next = limits->first ? now + TICK_MS * NS_PER_MS : CONNECTION_FOREVER - 1;

    atomic_store(&limits->wake_ns, CONNECTION_FOREVER);
    for (struct client_connection *each = limits->first; each; each = each->next) {
        uint64_t deadline = connection_check(each, now);

        if (deadline < next)
            next = deadline;
    }
    atomic_store(&limits->wake_ns, next);
    return next;
}

/* Returns the memory of many connections that have gone; the C library would keep what their
 * threads used. Needs the lock. */
static void memory_return(struct connection_limits *limits)
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
        uint64_t wake_ns = connections_check(limits);

        memory_return(limits);
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

int connection_limits_start(const struct connection_rules *rules, struct connection_limits **ret,
                            struct err *err)
{
    struct connection_limits *limits = xcalloc(1, sizeof(*limits));
    int r;

    limits->rules = *rules;
    worker_init(&limits->worker, LOCK_CONNECTION_LIMITS);
    r = thread_start(&limits->worker.thread, "holt-limits", connection_limits_main, limits);
    if (r < 0) {
        connection_limits_free(limits);
        return err_sys(err, r, "start the thread of the connection limits");
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

static struct in6_addr address_of(const struct sockaddr *client)
{
    struct in6_addr address = { 0 };

    if (client && client->sa_family == AF_INET6)
        address = ((const struct sockaddr_in6 *)(const void *)client)->sin6_addr;
    if (client && client->sa_family == AF_INET)
        memcpy(&address, &((const struct sockaddr_in *)(const void *)client)->sin_addr,
               sizeof(struct in_addr));
    return address;
}

static bool has_same_address(const struct client_connection *one,
                             const struct client_connection *other)
{
    return memcmp(&one->address, &other->address, sizeof(one->address)) == 0;
}

/* Needs the lock. */
static bool has_its_share(const struct connection_limits *limits,
                          const struct client_connection *new)
{
    size_t count = 0;

    for (const struct client_connection *each = limits->first; limits->rules.share > 0 && each;
         each = each->next)
        count += has_same_address(each, new);
    return limits->rules.share > 0 && count >= limits->rules.share;
}

/* Closes the connection that would be closed next anyway: one without a complete header rather than
 * an idle one, and never one that is being served. With `of`, only one of the same address. Needs
 * the lock. */
static void connection_evict(struct connection_limits *limits, const struct client_connection *of)
{
    struct client_connection *next = NULL;
    uint64_t earliest = CONNECTION_FOREVER;

    for (struct client_connection *each = limits->first; each; each = each->next) {
        uint64_t cut = atomic_load(&each->cut_ns);

        if (cut < earliest && (!of || has_same_address(each, of))) {
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
    bool is_empty = false;

    while (!is_empty && clock_ns() < until_ns) {
        lock_take(&limits->worker.lock);
        is_empty = !limits->first;
        lock_release(&limits->worker.lock);
        if (!is_empty)
            clock_sleep_ms(2);
    }
}

struct client_connection *connection_limits_add(struct connection_limits *limits, int fd,
                                                const struct sockaddr *address)
{
    struct client_connection *client = xcalloc(1, sizeof(*client));

    atomic_fetch_add(&connections, 1);
    client->limits = limits;
    client->fd = fd;
    client->end_ns = CONNECTION_FOREVER;
    client->address = address_of(address);
    atomic_store(&client->deadline_ns, CONNECTION_FOREVER);
    client_connection_allow(client, CONNECTION_FIRST_MS);
    lock_take(&limits->worker.lock);
    if (has_its_share(limits, client))
        connection_evict(limits, client);
    if (++limits->count > limits->rules.crowd)
        connection_evict(limits, NULL);
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

/* Does not wake the thread: every limit is longer than its tick. */
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

void client_connection_set_token(struct client_connection *client, const char *id)
{
    lock_scope(&client->limits->worker.lock);

    (void)snprintf(client->token, sizeof(client->token), "%s", id);
}

void client_connection_set_deadline(struct client_connection *client, uint64_t deadline_ns,
                                    bool is_stream)
{
    atomic_store(&client->is_stream, is_stream);
    atomic_store(&client->deadline_ns, deadline_ns);
    if (deadline_ns < atomic_load(&client->limits->wake_ns))
        connection_limits_wake(client->limits);
}
