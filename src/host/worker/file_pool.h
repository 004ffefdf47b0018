/* The file workers (wire/file.h) or the tool workers of one machine: one for each call in progress,
 * and idle ones for later calls. Part of a struct machine. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "host/worker/file_hub.h"

struct err;
struct file_worker;
struct machine;

enum {
    FILE_WORKERS_MAX = 16,    /* further calls wait */
    FILE_READ_ONLY_MAX = 8,   /* of these, for read-only callers */
    FILE_IDLE_MS = 30 * 1000, /* then an idle worker is ended */
};

struct file_worker {
    int fd;
    int pidfd;         /* from the kernel (SO_PASSPIDFD); negative: not available */
    uint64_t idle_ms;  /* of clock_ms(): when it became idle */
    bool is_read_only; /* leased to a read-only caller */
};

struct file_pool {
    struct machine *machine;
    bool is_of_tools;
    struct lock lock; /* protects all fields below; no slow operation runs under it */
    struct cond changed;
    struct file_worker idle[FILE_WORKERS_MAX]; /* used last in, first out */
    unsigned idle_count;
    unsigned count;           /* with the idle ones */
    unsigned read_only_count; /* leased to read-only callers */
    struct file_hub hub;      /* not counted */
    bool is_closed;
};

void file_pool_init(struct file_pool *pool, struct machine *machine, bool is_of_tools);

/* Returns "file worker" or "tool worker". */
const char *file_pool_worker_name(const struct file_pool *pool);

/* Returns the id of the machine. */
const char *file_pool_id(const struct file_pool *pool);

/* Ends the idle workers; the others end when they are returned. */
void file_pool_close(struct file_pool *pool);
void file_pool_done(struct file_pool *pool);

/* Takes an idle worker, or starts one within ten seconds and before the deadline (of clock_ms(); 0:
 * none). Returns 1, 0 when the limit is reached, or a negative errno with err set. Read-only
 * callers have a lower limit, so that they cannot keep all workers from the others. */
int file_pool_take(struct file_pool *pool, bool is_read_only, uint64_t deadline_ms,
                   struct file_worker *ret, struct err *err);

/* Waits a moment for a worker to be returned. */
void file_pool_wait(struct file_pool *pool, bool is_read_only);

/* Ends workers that have been idle for too long at now_ms of clock_ms(). */
void file_pool_prune(struct file_pool *pool, uint64_t now_ms);

/* Returns a worker: a reusable one becomes idle, any other is killed. */
void file_pool_give(struct file_pool *pool, struct file_worker *worker, bool is_good);

/* Starts or kills a worker that the pool does not count. */
int file_worker_start(const struct file_pool *pool, uint64_t deadline_ms, struct file_worker *ret,
                      struct err *err);
void file_worker_kill(struct file_worker *worker);

/* Whether a process of the sandbox has stopped the worker (SIGSTOP); false when that is unknown. */
bool file_worker_is_stopped(const struct file_worker *worker);

/* Lets a stopped worker run again, or kills it without closing its descriptors. */
void file_worker_signal(const struct file_worker *worker, int signal);

/* Waits a moment for a change. The caller holds the lock. */
void file_pool_wait_change(struct file_pool *pool);
