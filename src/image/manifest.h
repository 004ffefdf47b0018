/* Manifests and indexes of images, as registries send them. They are not trusted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/image_ref.h"

struct err;

enum { MANIFEST_BYTES_MAX = 4 << 20, MANIFEST_BLOBS_MAX = 256 };

struct manifest_blob {
    char digest[IMAGE_DIGEST_LEN + 1];
    uint64_t size;
};

struct manifest {
    char chosen[IMAGE_DIGEST_LEN + 1]; /* of an index: the manifest for this machine; "": it is a
                                          manifest */
    struct manifest_blob blobs[MANIFEST_BLOBS_MAX]; /* the configuration, then the layers, each
                                                       once */
    size_t blob_count;
    uint64_t bytes; /* of all blobs */
};

/* Parses either kind. Fails with ERR_UNSUPPORTED for an index without an image for linux/arch and
 * for formats from before OCI, with ERR_INVALID for anything else that is no image. */
int manifest_parse(const char *text, size_t len, const char *arch, struct manifest *ret,
                   struct err *err);
