// SPDX-License-Identifier: Apache-2.0
/* An OCI image layout: index.json lists manifests, or indexes of manifests, one per platform; a
 * manifest lists the layers, lowest first. Every blob is named by its digest. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "kernel/path.h"
#include "store/import/image_internal.h"
#include "store/import/import.h"
#include "store/import/root.h"

enum { INDEX_DEPTH_MAX = 4 };

static int blob_json(int image_fd, const char *digest, json_t **ret, struct err *err)
{
    cleanup_close int fd = -EBADF;
    int r = image_blob_open(image_fd, digest, &fd, err);

    if (r < 0)
        return r;
    return image_json_read(fd, digest, ret, err);
}

static int descriptor_digest(const json_t *descriptor, const char **ret, struct err *err)
{
    const char *digest = NULL;
    int r = json_get_text(descriptor, "digest", &digest, err);

    if (r < 0)
        return r;
    if (!digest)
        return err_set(err, ERR_INVALID, "the image refers to a blob without a digest");
    *ret = digest;
    return 0;
}

/* Returns whether an index entry may be an image for this machine. Attestations of builds are
 * listed with the platform "unknown". */
static bool is_for_this_machine(const json_t *descriptor)
{
    const json_t *platform = json_object_get(descriptor, "platform");
    const char *os = json_string_value(json_object_get(platform, "os"));
    const char *arch = json_string_value(json_object_get(platform, "architecture"));

    return (!os || strcmp(os, "linux") == 0) && (!arch || strcmp(arch, image_arch()) == 0);
}

static const char *descriptor_name(const json_t *descriptor, const char *digest)
{
    const json_t *annotations = json_object_get(descriptor, "annotations");
    const char *name = json_string_value(json_object_get(annotations, "io.containerd.image.name"));

    if (!name)
        name = json_string_value(json_object_get(annotations, "org.opencontainers.image.ref.name"));
    return name ? name : digest;
}

/* Returns the digest of the only entry for this machine. The same image may be listed under two
 * names. */
static int index_choose(const json_t *index, const char **ret_digest, struct err *err)
{
    cleanup_with(buf_done) struct buf names = BUF_INIT(IMAGE_NAMES_BYTES_MAX);
    const json_t *manifests = NULL, *descriptor;
    const char *chosen = NULL, *digest = NULL;
    bool several = false;
    size_t i;
    int r = json_get_array(index, "manifests", &manifests, err);

    if (r < 0)
        return r;
    json_array_foreach(manifests, i, descriptor) {
        if (!is_for_this_machine(descriptor))
            continue;
        r = descriptor_digest(descriptor, &digest, err);
        if (r < 0)
            return r;
        image_names_add(&names, descriptor_name(descriptor, digest));
        several = several || (chosen && strcmp(chosen, digest) != 0);
        chosen = digest;
    }
    if (!chosen)
        return err_set(err, ERR_UNSUPPORTED, "the archive has no image for linux/%s", image_arch());
    if (several)
        return err_set(err, ERR_INVALID, "the archive has several images: %s", names.data);
    *ret_digest = chosen;
    return 0;
}

/* Descends from an index, which it takes ownership of, to the manifest of the image. Writes its
 * digest, unless the "index" is the manifest itself. */
static int manifest_find(int image_fd, json_t *index, json_t **ret,
                         char ret_digest[static IMAGE_DIGEST_LEN + 1], struct err *err)
{
    cleanup_json json_t *document = index;
    int r;

    for (int depth = 0; depth <= INDEX_DEPTH_MAX; depth++) {
        const char *digest = NULL;
        json_t *next = NULL;

        if (json_object_get(document, "layers")) {
            *ret = TAKE_PTR(document);
            return 0;
        }
        r = index_choose(document, &digest, err);
        if (r < 0)
            return r;
        r = blob_json(image_fd, digest, &next, err);
        if (r < 0)
            return r;
        (void)snprintf(ret_digest, IMAGE_DIGEST_LEN + 1, "%s", digest);
        json_decref(document);
        document = next;
    }
    return err_set(err, ERR_INVALID, "the image indexes are nested too deep");
}

/* Reads the configuration that a manifest names; *ret stays NULL if it names none. */
static int config_read(int image_fd, const json_t *manifest, json_t **ret, struct err *err)
{
    const json_t *descriptor = NULL;
    const char *digest = NULL;
    int r = json_get_object(manifest, "config", &descriptor, err);

    if (r < 0 || !descriptor)
        return r;
    r = descriptor_digest(descriptor, &digest, err);
    return r < 0 ? r : blob_json(image_fd, digest, ret, err);
}

int image_manifest_check(int image_fd, const json_t *manifest, struct err *err)
{
    cleanup_json json_t *config = NULL;
    int r = config_read(image_fd, manifest, &config, err);

    return r < 0 || !config ? r : image_config_check(config, err);
}

int image_layout_read(int image_fd, json_t **ret_manifest, json_t **ret_config, struct err *err)
{
    cleanup_close int fd = open_no_links(image_fd, "index.json", O_RDONLY | O_NONBLOCK, 0);
    cleanup_json json_t *manifest = NULL, *config = NULL;
    char unused[IMAGE_DIGEST_LEN + 1];
    json_t *index;
    int r;

    if (fd < 0)
        return err_set(err, ERR_INVALID, "the archive is not an OCI image layout");
    r = image_json_read(fd, "index.json", &index, err);
    if (r == 0)
        r = manifest_find(image_fd, index, &manifest, unused, err);
    if (r == 0)
        r = config_read(image_fd, manifest, &config, err);
    if (r == 0 && !json_is_object(config))
        r = err_set(err, ERR_INVALID, "the image has no configuration");
    if (r == 0)
        r = image_config_check(config, err);
    if (r < 0)
        return r;
    *ret_manifest = TAKE_PTR(manifest);
    *ret_config = TAKE_PTR(config);
    return 0;
}

static uint64_t layer_size(const json_t *descriptor)
{
    json_int_t size = json_integer_value(json_object_get(descriptor, "size"));

    return size > 0 ? (uint64_t)size : 0;
}

static int layer_open(int image_fd, const json_t *descriptor, int *ret_fd, const char **ret_digest,
                      struct err *err)
{
    int r = descriptor_digest(descriptor, ret_digest, err);

    return r < 0 ? r : image_blob_open(image_fd, *ret_digest, ret_fd, err);
}

static int layer_apply(int image_fd, const json_t *descriptor, struct import_root *root,
                       struct err *err)
{
    cleanup_close int fd = -EBADF;
    const char *digest = NULL;
    int r = layer_open(image_fd, descriptor, &fd, &digest, err);

    return r < 0 ? r : image_layer_apply(fd, digest, root, err);
}

int image_layer_open(int image_fd, const json_t *manifest, size_t index, int *ret_fd,
                     struct err *err)
{
    const json_t *layers = json_object_get(manifest, "layers");
    const char *digest = NULL;

    if (index >= json_array_size(layers))
        return err_set(err, ERR_INVALID, "the image has no layer %zu", index + 1);
    return layer_open(image_fd, json_array_get(layers, index), ret_fd, &digest, err);
}

size_t image_layer_count(const json_t *manifest)
{
    return json_array_size(json_object_get(manifest, "layers"));
}

uint64_t image_layer_size(const json_t *manifest, size_t index)
{
    return layer_size(json_array_get(json_object_get(manifest, "layers"), index));
}

static int layers_apply(int image_fd, const json_t *manifest, struct import_root *root,
                        struct err *err)
{
    const json_t *layers = NULL, *descriptor;
    size_t i;
    int r = json_get_array(manifest, "layers", &layers, err);

    if (r < 0)
        return r;
    if (json_array_size(layers) > IMAGE_LAYERS_MAX)
        return err_set(err, ERR_EXHAUSTED, "the image has more than %d layers", IMAGE_LAYERS_MAX);
    json_array_foreach(layers, i, descriptor)
        budget_expect(root->budget, layer_size(descriptor));
    json_array_foreach(layers, i, descriptor) {
        r = layer_apply(image_fd, descriptor, root, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int image_apply(int image_fd, json_t *index, struct import_root *root, struct err *err)
{
    cleanup_json json_t *manifest = NULL;
    char unused[IMAGE_DIGEST_LEN + 1];
    int r = manifest_find(image_fd, index, &manifest, unused, err);

    if (r == 0)
        r = image_manifest_check(image_fd, manifest, err);
    return r < 0 ? r : layers_apply(image_fd, manifest, root, err);
}

int image_apply_oci(int image_fd, struct import_root *root, struct err *err)
{
    cleanup_close int fd = open_no_links(image_fd, "index.json", O_RDONLY | O_NONBLOCK, 0);
    json_t *index;
    int r;

    if (fd < 0)
        return import_error(err, fd, "open", "index.json");
    r = image_json_read(fd, "index.json", &index, err);
    return r < 0 ? r : image_apply(image_fd, index, root, err);
}

int image_apply_blobs(int image_fd, const char *digest, struct import_root *root, struct err *err)
{
    json_t *index;
    int r = blob_json(image_fd, digest, &index, err);

    return r < 0 ? r : image_apply(image_fd, index, root, err);
}

int image_manifest_read(int image_fd, const char *digest, json_t **ret,
                        char ret_digest[static IMAGE_DIGEST_LEN + 1], struct err *err)
{
    json_t *index;
    int r = blob_json(image_fd, digest, &index, err);

    (void)snprintf(ret_digest, IMAGE_DIGEST_LEN + 1, "%s", digest);
    return r < 0 ? r : manifest_find(image_fd, index, ret, ret_digest, err);
}

int image_config_read(int image_fd, const char *digest, json_t **ret, struct err *err)
{
    cleanup_json json_t *manifest = NULL;
    char unused[IMAGE_DIGEST_LEN + 1];
    int r = image_manifest_read(image_fd, digest, &manifest, unused, err);

    *ret = NULL;
    if (r == 0)
        r = config_read(image_fd, manifest, ret, err);
    if (r == 0 && !json_is_object(*ret)) {
        json_decref(*ret);
        r = err_set(err, ERR_INVALID, "the image has no configuration");
    }
    return r;
}
