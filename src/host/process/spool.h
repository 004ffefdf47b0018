/* One stream's output on disk: its first half and, in a ring behind it, the latest part. Nothing
 * here locks: the caller sees to it that the numbers are not read while they change, but reads and
 * writes of the file itself may go on beside each other. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct spool {
    int fd;             /* -EBADF: nothing is on disk */
    uint64_t half;      /* bytes of either part */
    uint64_t end;       /* offset behind what is on disk */
    uint64_t tail_from; /* the lowest offset of the latter part that is still whole */
    bool is_broken;     /* it could not be written; what comes later is not in it */
};

/* An empty one, without a file. */
void spool_init(struct spool *spool, uint64_t max_bytes);
void spool_done(struct spool *spool);

/* Makes the file. 0 or -errno. */
int spool_create(struct spool *spool, int dir_fd, const char *name);

/* Opens one that an earlier life wrote, whose stream has come to `end`; up to `ahead` bytes behind
 * that may have been written. -ENOENT when there is none. */
int spool_reopen(struct spool *spool, int dir_fd, const char *name, uint64_t end, uint64_t ahead);

/* The same of a stream of which only the file tells how far it came. */
int spool_recover(struct spool *spool, int dir_fd, const char *name);

/* Says that len bytes behind the end will be written: what they replace is not whole any more. */
void spool_announce(struct spool *spool, size_t len);

/* Writes them, without looking at anything that changes. 0 or -errno. */
int spool_write(const struct spool *spool, uint64_t offset, const void *data, size_t len);

/* Where the latter part begins; the former ends at spool_head_end. They touch if nothing is
 * missing. */
uint64_t spool_head_end(const struct spool *spool);
uint64_t spool_tail_start(const struct spool *spool);

/* Whether the byte at this offset is on disk. */
bool spool_has(const struct spool *spool, uint64_t offset);

/* Reads up to size bytes from an offset that was there: how many, or -errno. Afterwards the caller
 * looks whether it still is. */
ssize_t spool_read(const struct spool *spool, uint64_t offset, uint64_t end, void *into,
                   size_t size);
