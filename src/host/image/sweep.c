// SPDX-License-Identifier: Apache-2.0
#include "host/image/sweep.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "store/export/image.h"
#include "store/import/blobs.h"

/* The digests of all blobs that stay. */
struct kept {
    char (*digests)[IMAGE_DIGEST_LEN + 1];
    size_t count;
};

static void kept_done(struct kept *kept)
{
    free(kept->digests);
}

static void kept_add(struct kept *kept, const char *digest)
{
    kept->digests = xreallocarray(kept->digests, kept->count + 1, sizeof(*kept->digests));
    memcpy(kept->digests[kept->count++], digest, sizeof(*kept->digests));
}

/* Adds what an image consists of. One whose manifest is gone needs no blobs: a push makes new ones.
 */
static void kept_add_image(struct kept *kept, int images_fd, const char *digest)
{
    struct image_parts parts;
    struct err ignored;

    kept_add(kept, digest);
    if (image_parts_read(images_fd, digest, &parts, &ignored) < 0)
        return;
    kept_add(kept, parts.manifest.digest);
    for (size_t i = 0; i < parts.count; i++)
        kept_add(kept, parts.blobs[i].digest);
    free(parts.blobs);
}

static bool is_kept(const void *context, const char *hex)
{
    const struct kept *kept = context;

    for (size_t i = 0; i < kept->count; i++)
        if (strcmp(strchr(kept->digests[i], ':') + 1, hex) == 0)
            return true;
    return false;
}

int image_blobs_sweep(struct host *host, const struct image_sweep *sweep, uint64_t *ret_bytes,
                      struct err *err)
{
    cleanup_with(kept_done) struct kept kept = { .count = 0 };
    const struct blobs_sweep asked = { is_kept, &kept, sweep->older_ms, sweep->is_dry };
    cleanup_close int images_fd = -EBADF;
    int r;

    *ret_bytes = 0;
    if (atomic_load(&host->pulls) > 0 || atomic_load(&host->pushes) > 0)
        return 0;
    r = blobs_open(host->store, sweep->owner, &images_fd, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < sweep->count; i++)
        kept_add_image(&kept, images_fd, sweep->digests[i]);
    return blobs_remove(images_fd, &asked, ret_bytes, err);
}
