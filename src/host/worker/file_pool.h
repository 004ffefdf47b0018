/* The file workers of one machine (wire/file.h), or its tool workers: as many as calls go on, and
 * those that wait for the next call a while. Part of a struct machine. */
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
    FILE_LOOKERS_MAX = 8,     /* of these, for callers who may only look */
    FILE_IDLE_MS = 30 * 1000, /* after which one that nobody needs is ended */
};

struct file_worker {
    int fd;
    int pidfd;         /* the kernel's word for who it is; negative: it would not say */
    uint64_t idle_ms;  /* of clock_ms: since when it waits */
    bool is_read_only; /* lent to a caller who may only look */
};

struct file_pool {
    struct machine *machine;
    bool is_of_tools;
    struct lock lock; /* over all below; nothing is done inside it */
    struct cond changed;
    struct file_worker idle[FILE_WORKERS_MAX]; /* the one that came last is taken first */
    unsigned idle_count;
    unsigned count; /* idle ones included */
    unsigned lookers;
    struct file_hub hub; /* not one of them */
    bool is_closed;
};

void file_pool_init(struct file_pool *pool, struct machine *machine, bool is_of_tools);

/* What its workers are called. */
const char *file_pool_what(const struct file_pool *pool);

/* Of which machine they are. */
const char *file_pool_id(const struct file_pool *pool);

/* Ends those that wait; the others end when they are given back. */
void file_pool_close(struct file_pool *pool);
void file_pool_done(struct file_pool *pool);

/* A worker that waits, or a new one, which takes up to ten seconds but not beyond the deadline (of
 * clock_ms(); 0: none): 1, 0 when there are as many as there may be, or a negative errno with err
 * set. Who may only look (is_read_only) and never ends a call leaves some to the others. */
int file_pool_take(struct file_pool *pool, bool is_read_only, uint64_t deadline_ms,
                   struct file_worker *ret, struct err *err);

/* Waits a moment for one to come back. */
void file_pool_wait(struct file_pool *pool, bool is_read_only);

/* Ends those that have waited too long at now_ms of clock_ms. */
void file_pool_prune(struct file_pool *pool, uint64_t now_ms);

/* Gives it back: one in good order waits for the next call, any other is killed. */
void file_pool_give(struct file_pool *pool, struct file_worker *worker, bool is_good);

/* Starts one that the pool does not count; kills one. For what is beside the pool. */
int file_worker_start(const struct file_pool *pool, uint64_t deadline_ms, struct file_worker *ret,
                      struct err *err);
void file_worker_kill(struct file_worker *worker);

/* Waits a moment for something to change. Locked. */
void file_pool_sleep(struct file_pool *pool);
