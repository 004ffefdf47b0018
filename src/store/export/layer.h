/* Layers of images: tar archives with gzip, made of the trees of a template. What an overlay hides
 * is written as whiteouts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/image_ref.h"

struct err;

/* One tree and where it belongs in the layer. */
struct layer_tree {
    const char *target; /* absolute, "/" for the root */
    int fd;             /* O_PATH directory */
    bool is_upper;      /* an overlay layer: it can hide files of the layers below */
};

struct layer {
    char digest[IMAGE_DIGEST_LEN + 1];  /* of the compressed archive */
    char diff_id[IMAGE_DIGEST_LEN + 1]; /* of the archive */
    uint64_t size;                      /* compressed */
};

/* Writes a layer to a file. The same trees give the same bytes. Sockets are left out. Fails with
 * ERR_INVALID for a name that means a whiteout in images. */
int image_layer_write(const struct layer_tree *trees, size_t count, int fd, struct layer *ret,
                      struct err *err);
