/* The watches of one machine, all of them in one worker that the pool does not count. Part of a
 * struct file_pool. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct file_pool;
struct file_worker;

/* The pool's lock protects all fields. */
struct file_hub {
    int fd, pidfd; /* the worker's; negative: none */
    bool is_starting;
    unsigned count;   /* of watches */
    uint64_t idle_ms; /* of clock_ms(): when the last watch ended */
};

/* Opens a socket for one WATCH, as root. Returns 1, 0 when another thread is starting the worker
 * (then call file_hub_wait), or a negative errno with err set. ret has no process of its own. */
int file_hub_take(struct file_pool *pool, uint64_t deadline_ms, struct file_worker *ret,
                  struct err *err);

/* Waits a moment for the worker that another thread is starting. */
void file_hub_wait(struct file_pool *pool);

/* Ends the watch. */
void file_hub_give(struct file_pool *pool, struct file_worker *worker);
