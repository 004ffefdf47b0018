/* The file workers of one machine (wire/file.h): a few that wait for the next call, and as many as
 * calls go on. Part of a struct machine. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct err;
struct file_worker;
struct machine;

enum {
    FILE_IDLE_MAX = 4,
    FILE_WORKERS_MAX = 16, /* further calls wait */
};

struct file_worker {
    int fd;
    int pidfd; /* the kernel's word for who it is; negative: it would not say */
};

struct file_pool {
    pthread_mutex_t lock; /* over everything below; nothing is done inside it */
    pthread_cond_t changed;
    struct file_worker idle[FILE_IDLE_MAX];
    unsigned idle_count;
    unsigned count; /* idle ones included */
    bool is_closed;
};

void file_pool_init(struct file_pool *pool);

/* Ends those that wait; the others end when they are given back. */
void file_pool_close(struct file_pool *pool);
void file_pool_done(struct file_pool *pool);

/* A worker that waits, or a new one, which takes up to FILE_START_S seconds: 1, 0 when there are as
 * many as there may be, or a negative errno with err set. */
int file_pool_take(struct machine *machine, struct file_worker *ret, struct err *err);

/* Waits a moment for one to come back. */
void file_pool_wait(struct file_pool *pool);

/* Gives it back: one in good order waits for the next call, any other is killed. */
void file_pool_give(struct file_pool *pool, struct file_worker *worker, bool is_good);
