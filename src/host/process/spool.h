/* A stream's output on disk: the head in the first half of the file, the latest bytes (tail) in
 * a ring in the second. Without locks of its own: the caller protects the struct, but reads and
 * writes of the file may run concurrently. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct spool {
    int fd;             /* -EBADF: no file */
    uint64_t half;      /* size of each half in bytes */
    uint64_t end;       /* end offset of the stream on disk */
    uint64_t tail_from; /* lowest valid offset in the tail */
    bool is_broken;     /* a write failed; later output is not on disk */
};

/* Initializes an empty spool without a file. */
void spool_init(struct spool *spool, uint64_t max_bytes);
void spool_done(struct spool *spool);

/* Creates the file. 0 or -errno. */
int spool_create(struct spool *spool, int dir_fd, const char *name);

/* Opens a file of a previous daemon, whose stream has reached `end`; up to `ahead` more bytes
 * may have been written. -ENOENT if there is none. */
int spool_reopen(struct spool *spool, int dir_fd, const char *name, uint64_t end, uint64_t ahead);

/* Opens a file of a previous daemon and takes the end of the stream from its size. */
int spool_recover(struct spool *spool, int dir_fd, const char *name);

/* Announces a write of len bytes at the end: what they overwrite is not valid any more. */
void spool_reserve(struct spool *spool, size_t len);

/* Writes bytes that were reserved; reads only the constant fields of the struct. 0 or -errno. */
int spool_write(const struct spool *spool, uint64_t offset, const void *data, size_t len);

/* The end of the head and the start of the tail, which are equal if nothing is missing. */
uint64_t spool_head_end(const struct spool *spool);
uint64_t spool_tail_start(const struct spool *spool);

/* Returns whether the byte at this offset is on disk. */
bool spool_has(const struct spool *spool, uint64_t offset);

/* Reads up to size bytes at a valid offset: returns their number, or -errno. A concurrent write
 * may have replaced them, so the caller checks spool_has afterwards. */
ssize_t spool_read(const struct spool *spool, uint64_t offset, uint64_t end, void *into,
                   size_t size);
