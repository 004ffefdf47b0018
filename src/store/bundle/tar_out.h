/* Writes tar archives (pax) to a function. The same entries always give the same bytes, so that a
 * digest computed in one pass is that of the archive written in the next. */
#pragma once

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/buf.h"

enum { TAR_BLOCK = 512, TAR_RECORDS_MAX = 1 << 20 };

struct tar_out {
    int (*write)(void *context, const void *data, size_t len); /* returns 0 or -errno */
    void *context;
    struct buf records; /* of the entry being written */
};

#define TAR_OUT_INIT(write_, context_)                                                             \
    {                                                                                              \
        .write = (write_), .context = (context_), .records = BUF_INIT(TAR_RECORDS_MAX)             \
    }

struct tar_node {
    const char *path; /* without a leading slash; a directory gets one at its end */
    const char *link; /* target of a symbolic or hard link; NULL: none */
    char type;        /* '0' file, '1' hard link, '2' symbolic link, '5' directory, '6' fifo */
    mode_t mode;
    uid_t uid;
    gid_t gid;
    struct timespec mtime;
    uint64_t size;        /* of the data that follows */
    uint64_t sparse_size; /* of a file with holes, whose data begins with its map; else 0 */
};

/* Adds an extended attribute to the next entry. Returns 0 or -errno. */
int tar_out_xattr(struct tar_out *out, const char *name, const void *value, size_t len);

/* Begins an entry. Returns 0 or -errno; -ENOBUFS if its attributes are too large. */
int tar_out_header(struct tar_out *out, const struct tar_node *node);

/* Adds data of the entry. */
int tar_out_data(struct tar_out *out, const void *data, size_t len);

/* Fills up the last block after `size` bytes of data. */
int tar_out_pad(struct tar_out *out, uint64_t size);

/* Writes the end of the archive. */
int tar_out_end(struct tar_out *out);

void tar_out_done(struct tar_out *out);
