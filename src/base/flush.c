// SPDX-License-Identifier: Apache-2.0
#include "base/flush.h"

#include <errno.h>
#include <unistd.h>

void flush_init(struct flush *flush)
{
    *flush = (struct flush){ .written = 0 };
    lock_init(&flush->lock, LOCK_FLUSH);
    cond_init(&flush->changed);
}

void flush_destroy(struct flush *flush)
{
    cond_destroy(&flush->changed);
    lock_destroy(&flush->lock);
}

uint64_t flush_count_write(struct flush *flush)
{
    lock_scope(&flush->lock);

    return ++flush->written;
}

uint64_t flush_last_write(struct flush *flush)
{
    lock_scope(&flush->lock);

    return flush->written;
}

/* Flushes everything that has been written so far. The caller holds the lock. */
static void flush_run(struct flush *flush, int fd)
{
    uint64_t upto = flush->written;
    int r;

    flush->is_flushing = true;
    lock_release(&flush->lock);
    r = fdatasync(fd) < 0 ? -errno : 0;
    lock_take(&flush->lock);
    flush->is_flushing = false;
    if (r == 0) {
        flush->flushed = upto;
    } else {
        if (flush->lost_to < flush->flushed || flush->lost_to == 0)
            flush->lost_from = flush->flushed;
        flush->lost_to = upto;
        flush->lost_errno = -r;
    }
    cond_broadcast(&flush->changed);
}

static bool is_lost(const struct flush *flush, uint64_t write)
{
    return write > flush->lost_from && write <= flush->lost_to;
}

int flush_wait(struct flush *flush, int fd, uint64_t write)
{
    lock_scope(&flush->lock);

    while (flush->flushed < write && !is_lost(flush, write)) {
        if (flush->is_flushing)
            cond_wait(&flush->changed, &flush->lock);
        else
            flush_run(flush, fd);
    }
    return is_lost(flush, write) ? -flush->lost_errno : 0;
}
