/* A worker inside a sandbox, lent for one call: taken from its pool, spoken to, given back. What is
 * said is the caller's affair. Everything ends when the caller's client goes away or its time is
 * over. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/worker/file_pool.h"

struct buf;
struct err;
struct iovec;
struct machine;
struct sandbox;

struct worker_lease {
    struct sandbox *sandbox; /* attached */
    struct machine *machine; /* a reference; NULL: there is no worker */
    struct file_pool *pool;  /* of the machine */
    struct file_worker worker;
    bool is_watch;
    int watch_fd;         /* -1: none */
    uint64_t deadline_ms; /* of clock_ms(); 0: none */
};

struct worker_request {
    bool is_of_tools;
    bool is_read_only;
    bool is_watch; /* for one WATCH, as root: it takes no worker from the others */
    int watch_fd;
    uint64_t deadline_ms;
};

/* Needs what exec needs, and keeps the sandbox from being idle until the lease is over. In any case
 * the caller ends it with lease_end. */
int lease_begin(struct worker_lease *lease, struct sandbox *sandbox,
                const struct worker_request *wish, struct err *err);

/* Waits until the worker's socket is ready, for timeout_ms at most (-1: no limit of its own): 0,
 * -ECANCELED when the client has gone, -ETIMEDOUT, -errno. */
int lease_wait(const struct worker_lease *lease, short events, int timeout_ms);

/* Sends all parts, which are changed: 0, -EPIPE when the worker has ended, or as lease_wait. */
int lease_send(const struct worker_lease *lease, struct iovec *parts, size_t count);

/* Appends what comes, up to room bytes: 0, -ENOBUFS, -ENOMEM, -EPIPE, or as lease_wait. */
int lease_receive(const struct worker_lease *lease, struct buf *in, size_t room);

/* What one of these returned, for a client. Returns r, or what stands for it. */
int lease_refuse(const struct worker_lease *lease, int r, struct err *err);

/* Gives the worker back: one that is good waits for the next call, any other is killed. */
void lease_end(struct worker_lease *lease, bool is_good);
