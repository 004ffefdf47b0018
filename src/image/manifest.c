// SPDX-License-Identifier: Apache-2.0
#include "image/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"

static int blob_read(const json_t *descriptor, struct manifest_blob *ret, struct err *err)
{
    const json_t *size = json_object_get(descriptor, "size");
    const char *digest = json_string_value(json_object_get(descriptor, "digest"));

    if (!digest || !image_digest_is(digest))
        return err_set(err, ERR_INVALID, "the manifest has a blob without a sha256 digest");
    if (!json_is_integer(size) || json_integer_value(size) < 0)
        return err_set(err, ERR_INVALID, "the manifest gives blob %.19s no size", digest);
    (void)snprintf(ret->digest, sizeof(ret->digest), "%s", digest);
    ret->size = (uint64_t)json_integer_value(size);
    return 0;
}

/* A layer may occur twice. */
static int blob_add(struct manifest *manifest, const json_t *descriptor, struct err *err)
{
    struct manifest_blob blob = { .size = 0 };
    int r = blob_read(descriptor, &blob, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < manifest->blob_count; i++)
        if (strcmp(manifest->blobs[i].digest, blob.digest) == 0)
            return 0;
    if (manifest->blob_count == MANIFEST_BLOBS_MAX)
        return err_set(err, ERR_EXHAUSTED, "the image has more than %d blobs", MANIFEST_BLOBS_MAX);
    if (blob.size > UINT64_MAX / 2 - manifest->bytes)
        return err_set(err, ERR_INVALID, "the manifest gives blob %.19s an absurd size",
                       blob.digest);
    manifest->bytes += blob.size;
    manifest->blobs[manifest->blob_count++] = blob;
    return 0;
}

static int layers_read(const json_t *object, struct manifest *manifest, struct err *err)
{
    const json_t *layers = NULL, *config = NULL, *layer;
    size_t i;
    int r = json_get_object(object, "config", &config, err);

    if (r == 0)
        r = json_get_array(object, "layers", &layers, err);
    if (r == 0 && !config)
        r = err_set(err, ERR_INVALID, "the manifest has no configuration");
    if (r == 0)
        r = blob_add(manifest, config, err);
    json_array_foreach(layers, i, layer) {
        if (r == 0)
            r = blob_add(manifest, layer, err);
    }
    return r;
}

/* Takes the first entry for this machine; attestations of builds have the platform "unknown". */
static int index_read(const json_t *manifests, const char *arch, struct manifest *manifest,
                      struct err *err)
{
    const json_t *entry;
    struct manifest_blob blob;
    size_t i;

    json_array_foreach(manifests, i, entry) {
        const json_t *platform = json_object_get(entry, "platform");
        const char *os = json_string_value(json_object_get(platform, "os"));
        const char *its_arch = json_string_value(json_object_get(platform, "architecture"));

        if ((os && strcmp(os, "linux") != 0) || (its_arch && strcmp(its_arch, arch) != 0))
            continue;
        if (blob_read(entry, &blob, err) < 0)
            return err_wrap(err, "the index");
        memcpy(manifest->chosen, blob.digest, sizeof(manifest->chosen));
        return 0;
    }
    return err_set(err, ERR_UNSUPPORTED, "there is no image for linux/%s", arch);
}

int manifest_parse(const char *text, size_t len, const char *arch, struct manifest *ret,
                   struct err *err)
{
    cleanup_json json_t *object = NULL;
    const json_t *manifests = NULL;
    int r = json_parse_object(text, len, &object, err);

    *ret = (struct manifest){ .chosen = "" };
    if (r == 0)
        r = json_get_array(object, "manifests", &manifests, err);
    if (r < 0)
        return err_wrap(err, "the manifest");
    if (manifests)
        return index_read(manifests, arch, ret, err);
    if (json_object_get(object, "fsLayers"))
        return err_set(err, ERR_UNSUPPORTED,
                       "the image has a manifest of schema 1, from before 2016");
    if (!json_object_get(object, "layers"))
        return err_set(err, ERR_INVALID, "this is neither an image nor an index of images");
    return layers_read(object, ret, err);
}
