/* Group commit of one file: several threads that write to it wait for one fdatasync(2) together. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"

struct flush {
    struct lock lock; /* protects the fields below */
    struct cond changed;
    uint64_t written;   /* number of the last write */
    uint64_t flushed;   /* all writes up to this one are on disk */
    uint64_t lost_from; /* the writes above this one and up to lost_to were in a failed flush */
    uint64_t lost_to;
    int lost_errno;
    bool is_flushing; /* one thread is in fdatasync */
};

/* Makes a group without writes. */
void flush_init(struct flush *flush);

/* Nobody may use the group afterwards. */
void flush_destroy(struct flush *flush);

/* Counts a write that has been made, and returns its number for flush_wait. */
uint64_t flush_count_write(struct flush *flush);

/* Returns the number of the last write that was counted. */
uint64_t flush_last_write(struct flush *flush);

/* Returns 0 once the write is on disk, or -errno of the flush that should have covered it: the
 * kernel reports a failed write once, so a later flush proves nothing about it. */
int flush_wait(struct flush *flush, int fd, uint64_t write);
