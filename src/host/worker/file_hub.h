/* The watches of one machine: all of them in one worker, which is no file worker's place. Part of a
 * struct file_pool. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct file_pool;
struct file_worker;

/* Under the pool's lock. */
struct file_hub {
    int fd, pidfd; /* the worker's; negative: there is none */
    bool is_starting;
    unsigned count;   /* watches */
    uint64_t idle_ms; /* of clock_ms: since when there are none */
};

/* A socket over which one WATCH may be asked for, as root: 1, 0 when the worker is on its way (then
 * file_hub_wait), or a negative errno with err set. ret has no process of its own. */
int file_hub_take(struct file_pool *pool, uint64_t deadline_ms, struct file_worker *ret,
                  struct err *err);

/* Waits a moment for a worker that somebody else starts. */
void file_hub_wait(struct file_pool *pool);

/* The watch is over. */
void file_hub_give(struct file_pool *pool, struct file_worker *worker);
