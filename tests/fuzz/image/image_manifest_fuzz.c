// SPDX-License-Identifier: Apache-2.0
/* Manifests from anywhere: refused with a reason, or blobs with digests and a sum of sizes. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "image/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_free struct manifest *manifest = xcalloc(1, sizeof(*manifest));
    struct err err = { 0 };
    uint64_t bytes = 0;

    if (manifest_parse((const char *)data, size, "amd64", manifest, &err) < 0) {
        assert(err.kind != ERR_NONE && err.msg[0]);
        return 0;
    }
    assert((manifest->chosen[0] != '\0') == (manifest->blob_count == 0));
    assert(!manifest->chosen[0] || image_digest_is(manifest->chosen));
    for (size_t i = 0; i < manifest->blob_count; i++) {
        assert(image_digest_is(manifest->blobs[i].digest));
        bytes += manifest->blobs[i].size;
    }
    assert(bytes == manifest->bytes);
    return 0;
}
