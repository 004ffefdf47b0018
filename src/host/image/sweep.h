/* Removes the blobs of an owner that none of its images consists of. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct host;

struct image_sweep {
    const char *owner;
    const char *const *digests; /* of the images that stay */
    size_t count;
    uint64_t older_ms; /* only blobs that were used this long ago */
    bool is_dry;       /* remove nothing */
};

/* Removes nothing while an image of the host is being pulled or pushed: its blobs have no template
 * yet. Writes how many bytes were removed, or would be. */
int image_blobs_sweep(struct host *host, const struct image_sweep *sweep, uint64_t *ret_bytes,
                      struct err *err);
