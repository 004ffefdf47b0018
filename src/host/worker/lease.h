/* A lease: one worker inside a sandbox for one call, taken from its pool and returned. The content
 * of the messages is up to the caller. All calls end when the caller's client disconnects or the
 * deadline has passed. */
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
    struct machine *machine; /* referenced; NULL: there is no worker */
    struct file_pool *pool;  /* of the machine */
    struct file_worker worker;
    bool is_watch;
    int watch_fd;         /* -1: none */
    uint64_t deadline_ms; /* of clock_ms(); 0: none */
};

struct worker_request {
    bool is_of_tools;
    bool is_read_only;
    bool is_watch; /* for one WATCH, as root: takes no worker from the pool */
    int watch_fd;
    uint64_t deadline_ms;
};

/* Takes a worker, under the same conditions as an exec, and keeps the sandbox from being idle. The
 * caller calls lease_end in any case. */
int lease_begin(struct worker_lease *lease, struct sandbox *sandbox,
                const struct worker_request *request, struct err *err);

/* Waits until the worker's socket is ready, for at most timeout_ms (-1: until the deadline).
 * Returns 0, -ECANCELED when the client has disconnected, -EPIPE when the worker was stopped too
 * often and has been killed, -ETIMEDOUT or another -errno. A worker that the sandbox has stopped is
 * resumed within two seconds. */
int lease_wait(const struct worker_lease *lease, short events, int timeout_ms);

/* Sends all parts, and modifies them. Returns 0, -EPIPE when the worker has ended, or as
 * lease_wait. */
int lease_send(const struct worker_lease *lease, struct iovec *parts, size_t count);

/* Appends received bytes, at most `room`. Returns 0, -ENOBUFS, -ENOMEM, -EPIPE, or as lease_wait.
 */
int lease_receive(const struct worker_lease *lease, struct buf *in, size_t room);

/* Sets err for a result r of the functions above, and returns the error to pass on. */
int lease_set_error(const struct worker_lease *lease, int r, struct err *err);

/* Ends the lease: a reusable worker becomes idle, any other is killed. */
void lease_end(struct worker_lease *lease, bool is_good);
