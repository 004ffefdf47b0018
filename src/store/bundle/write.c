// SPDX-License-Identifier: Apache-2.0
/* Writes bundles. Every layer is made twice: once for its digest, which the files before it must
 * name, and once to be sent. So no room is needed for it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "store/bundle/bundle.h"
#include "store/bundle/layer.h"
#include "store/bundle/tar_out.h"
#include "store/import/image.h"
#include "store/volume/volume.h"

#define TYPE_INDEX "application/vnd.oci.image.index.v1+json"
#define TYPE_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define TYPE_CONFIG "application/vnd.oci.image.config.v1+json"
#define TYPE_LAYER "application/vnd.oci.image.layer.v1.tar"

static const char layout_text[] = "{\"imageLayoutVersion\":\"1.0.0\"}";

/* Counts what is written, computes its digest and passes it on. */
struct layer_sink {
    struct digest *digest;
    uint64_t size;
    bundle_write_fn *write; /* NULL: nowhere */
    void *context;
};

static int sink_write(void *context, const void *data, size_t len)
{
    struct layer_sink *sink = context;

    digest_add(sink->digest, data, len);
    sink->size += len;
    return sink->write ? sink->write(sink->context, data, len) : 0;
}

/* Opens a state, or nothing with the trees of `like`. */
static int state_open(const struct bundle *bundle, size_t index, struct volume_view *ret,
                      struct err *err)
{
    return volume_view(bundle->volume, bundle->states[index].snapshot, ret, err);
}

static void view_empty(const struct volume_view *like, struct volume_view *ret)
{
    *ret = (struct volume_view){ .tree_count = like->tree_count };
    for (size_t i = 0; i < like->tree_count; i++)
        ret->trees[i].target = like->trees[i].target;
}

static int layer_send(const struct bundle *bundle, size_t index, struct tar_out *out,
                      struct err *err)
{
    struct volume_view old = { .tree_count = 0 }, new = { .tree_count = 0 };
    bool is_omitted = index == 0 && bundle->omits_template;
    int r = is_omitted ? 0 : state_open(bundle, index, &new, err);

    if (r == 0 && index == 0)
        view_empty(&new, &old);
    else if (r == 0)
        r = state_open(bundle, index - 1, &old, err);
    if (r == 0 && !is_omitted)
        r = layer_write(out, &old, &new, index ? bundle->states[index - 1].taken_ms : 0, err);
    volume_view_done(bundle->volume, &old);
    volume_view_done(bundle->volume, &new);
    if (r < 0)
        return r;
    r = tar_out_end(out);
    return r < 0 ? err_sys(err, r, "write a layer") : 0;
}

/* Makes a layer, with its digest and size. */
static int layer_make(const struct bundle *bundle, size_t index, bundle_write_fn *write,
                      void *context, struct bundle_layer *ret, struct err *err)
{
    cleanup_with(digest_free_slot) struct digest *digest = digest_new();
    struct layer_sink sink = { .digest = digest, .write = write, .context = context };
    cleanup_with(tar_out_done) struct tar_out out = TAR_OUT_INIT(sink_write, &sink);
    int r = digest ? layer_send(bundle, index, &out, err) : err_sys(err, -ENOMEM, "hash a layer");

    if (r < 0)
        return r;
    ret->size = sink.size;
    r = digest_hex(digest, ret->hex);
    return r < 0 ? err_sys(err, r, "hash a layer") : 0;
}

/* --- the documents ---------------------------------------------------------------------------- */

static json_t *descriptor_make(const char *type, const struct bundle_layer *blob)
{
    return json_pack("{s:s, s:o, s:I}", "mediaType", type, "digest",
                     json_sprintf("sha256:%s", blob->hex), "size", (json_int_t)blob->size);
}

static int text_make(json_t *object, char **ret_text, struct bundle_layer *ret_blob,
                     struct err *err)
{
    cleanup_with(digest_free_slot) struct digest *digest = digest_new();
    cleanup_json json_t *owned = object;

    *ret_text = owned ? json_dumps(owned, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    if (!*ret_text || !digest)
        return err_sys(err, -ENOMEM, "describe a bundle");
    ret_blob->size = strlen(*ret_text);
    digest_add(digest, *ret_text, strlen(*ret_text));
    return digest_hex(digest, ret_blob->hex) < 0 ? err_sys(err, -EIO, "describe a bundle") : 0;
}

static int config_make(struct bundle *bundle, json_t *config, struct err *err)
{
    json_t *ids = json_array();

    for (size_t i = 0; i < bundle->count; i++)
        (void)json_array_append_new(ids, json_sprintf("sha256:%s", bundle->layers[i].hex));
    (void)json_object_set_new(config, "os", json_string("linux"));
    (void)json_object_set_new(config, "architecture", json_string(image_arch()));
    (void)json_object_set_new(config, "rootfs",
                              json_pack("{s:s, s:o}", "type", "layers", "diff_ids", ids));
    return text_make(json_incref(config), &bundle->config, &bundle->config_blob, err);
}

static int manifest_make(struct bundle *bundle, struct err *err)
{
    json_t *layers = json_array();

    for (size_t i = 0; i < bundle->count; i++)
        (void)json_array_append_new(layers, descriptor_make(TYPE_LAYER, &bundle->layers[i]));
    return text_make(
        json_pack("{s:i, s:s, s:o, s:o}", "schemaVersion", 2, "mediaType", TYPE_MANIFEST, "config",
                  descriptor_make(TYPE_CONFIG, &bundle->config_blob), "layers", layers),
        &bundle->manifest, &bundle->manifest_blob, err);
}

static int index_make(struct bundle *bundle, struct err *err)
{
    struct bundle_layer unused;

    return text_make(json_pack("{s:i, s:s, s:[o]}", "schemaVersion", 2, "mediaType", TYPE_INDEX,
                               "manifests", descriptor_make(TYPE_MANIFEST, &bundle->manifest_blob)),
                     &bundle->index, &unused, err);
}

/* --- the archive ------------------------------------------------------------------------------ */

static int text_send(struct tar_out *out, const char *path, const char *text)
{
    const struct tar_node node = { .path = path, .type = '0', .mode = 0644, .size = strlen(text) };
    int r = tar_out_header(out, &node);

    if (r == 0)
        r = tar_out_data(out, text, node.size);
    return r == 0 ? tar_out_pad(out, node.size) : r;
}

static const char *blob_path(char into[static DIGEST_HEX_LEN + 16], const char *hex)
{
    (void)snprintf(into, DIGEST_HEX_LEN + 16, "blobs/sha256/%s", hex);
    return into;
}

static int head_send(const struct bundle *bundle, struct tar_out *out)
{
    static const struct tar_node dirs[] = { { .path = "blobs", .type = '5', .mode = 0755 },
                                            { .path = "blobs/sha256", .type = '5', .mode = 0755 } };
    char path[DIGEST_HEX_LEN + 16];
    int r = text_send(out, "oci-layout", layout_text);

    if (r == 0)
        r = text_send(out, "index.json", bundle->index);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(dirs); i++)
        r = tar_out_header(out, &dirs[i]);
    if (r == 0)
        r = text_send(out, blob_path(path, bundle->manifest_blob.hex), bundle->manifest);
    if (r == 0)
        r = text_send(out, blob_path(path, bundle->config_blob.hex), bundle->config);
    return r;
}

/* Returns whether an earlier layer is the same, as those of snapshots without a change are. */
static bool is_repeated(const struct bundle *bundle, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(bundle->layers[i].hex, bundle->layers[index].hex) == 0)
            return true;
    return false;
}

static int blob_begin(const struct bundle *bundle, size_t index, struct tar_out *out)
{
    char path[DIGEST_HEX_LEN + 16];
    const struct tar_node node = { .path = blob_path(path, bundle->layers[index].hex),
                                   .type = '0',
                                   .mode = 0644,
                                   .size = bundle->layers[index].size };

    return tar_out_header(out, &node);
}

static int blob_send(struct bundle *bundle, size_t index, struct tar_out *out, struct err *err)
{
    struct bundle_layer sent = { .size = 0 };
    int r = blob_begin(bundle, index, out);

    if (r < 0)
        return err_sys(err, r, "send the bundle");
    r = layer_make(bundle, index, out->write, out->context, &sent, err);
    if (r < 0)
        return r;
    if (strcmp(sent.hex, bundle->layers[index].hex) != 0)
        return err_set(err, ERR_BUSY, "the files changed while they were exported");
    r = tar_out_pad(out, sent.size);
    return r < 0 ? err_sys(err, r, "send the bundle") : 0;
}

static int size_count(void *context, const void *data, size_t len)
{
    (void)data;
    *(uint64_t *)context += len;
    return 0;
}

/* Computes the size of the archive. */
static int size_compute(struct bundle *bundle)
{
    cleanup_with(tar_out_done) struct tar_out out = TAR_OUT_INIT(size_count, &bundle->size);
    int r = head_send(bundle, &out);

    for (size_t i = 0; r == 0 && i < bundle->count; i++) {
        if (is_repeated(bundle, i))
            continue;
        r = blob_begin(bundle, i, &out);
        bundle->size += bundle->layers[i].size;
        if (r == 0)
            r = tar_out_pad(&out, bundle->layers[i].size);
    }
    return r == 0 ? tar_out_end(&out) : r;
}

int bundle_measure(struct bundle *bundle, json_t *config, struct err *err)
{
    int r = 0;

    if (bundle->count > BUNDLE_LAYERS_MAX)
        return err_set(err, ERR_EXHAUSTED,
                       "%zu snapshots are too many for a bundle; at most %d can be exported",
                       bundle->count - 2, BUNDLE_LAYERS_MAX - 2);
    bundle->layers = xcalloc(bundle->count, sizeof(*bundle->layers));
    for (size_t i = 0; r == 0 && i < bundle->count; i++)
        r = layer_make(bundle, i, NULL, NULL, &bundle->layers[i], err);
    if (r == 0)
        r = config_make(bundle, config, err);
    if (r == 0)
        r = manifest_make(bundle, err);
    if (r == 0)
        r = index_make(bundle, err);
    if (r < 0)
        return r;
    r = size_compute(bundle);
    return r < 0 ? err_sys(err, r, "measure the bundle") : 0;
}

int bundle_write(struct bundle *bundle, bundle_write_fn *write, void *context, struct err *err)
{
    cleanup_with(tar_out_done) struct tar_out out = TAR_OUT_INIT(write, context);
    int r = head_send(bundle, &out);

    if (r < 0)
        return err_sys(err, r, "send the bundle");
    for (size_t i = 0; r == 0 && i < bundle->count; i++)
        r = is_repeated(bundle, i) ? 0 : blob_send(bundle, i, &out, err);
    if (r < 0)
        return r;
    r = tar_out_end(&out);
    return r < 0 ? err_sys(err, r, "send the bundle") : 0;
}

void bundle_done(struct bundle *bundle)
{
    free(bundle->layers);
    free(bundle->config);
    free(bundle->manifest);
    free(bundle->index);
    bundle->layers = NULL;
    bundle->config = bundle->manifest = bundle->index = NULL;
}
