/* Runs holt-image, which fetches the blobs of one image. */
#pragma once

#include <jansson.h>

#include "base/text/image_ref.h"
#include "store/template/template.h"

struct err;

struct image_fetch {
    const json_t *endpoints;
    const struct image_ref *ref;
    const char *user, *password;
    int images_fd;      /* directory of the blobs, see store/import/blobs.h */
    uint64_t bytes_max; /* of all blobs */
    template_progress_fn progress;
    void *context;
};

/* Fetches and verifies all blobs of an image. Writes the digest of its manifest or index. */
int image_fetch(const struct image_fetch *fetch, char ret_digest[static IMAGE_DIGEST_LEN + 1],
                struct err *err);
