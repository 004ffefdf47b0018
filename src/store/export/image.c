// SPDX-License-Identifier: Apache-2.0
#include "store/export/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "kernel/path.h"
#include "store/export/layer.h"
#include "store/import/blobs.h"
#include "store/import/digest.h"
#include "store/import/image_internal.h"
#include "store/store_internal.h"
#include "store/template/settings.h"

#define OCI_TYPE "application/vnd.oci.image."
#define DOCKER_LAYER_TYPE "application/vnd.docker.image.rootfs.diff.tar.gzip"
#define OCI_LAYER_TYPE OCI_TYPE "layer.v1.tar+gzip"

struct exporter {
    struct store *store;
    struct template *template;
    int images_fd;
    json_t *layers, *diff_ids, *history; /* arrays */
    char created[sizeof("2000-01-01T00:00:00Z") + 16];
    struct image_export *ret;
};

static void exporter_done(struct exporter *exporter)
{
    json_decref(exporter->layers);
    json_decref(exporter->diff_ids);
    json_decref(exporter->history);
    template_close(exporter->template);
}

/* --- the image below -------------------------------------------------------------------------- */

static int meta_read(struct exporter *exporter, const char *name, struct template_meta *ret,
                     struct err *err)
{
    cleanup_close int fd =
        open_no_links(exporter->store->templates_fd, name, O_PATH | O_DIRECTORY, 0);

    return fd < 0 ? err_sys(err, fd, "open template '%s'", name) : template_meta_read(fd, ret, err);
}

/* The image that a template is, or is based on. */
struct origin {
    char name[TEMPLATE_NAME_MAX + 1];
    char digest[IMAGE_DIGEST_LEN + 1]; /* "": there is none */
    size_t above;                      /* layers of commits on top of it */
};

/* Finds the nearest image from the top. Each commit is one layer, and an image has none itself: it
 * has a root, or a base that is a layer. */
static int origin_find(struct exporter *exporter, struct origin *ret, struct err *err)
{
    struct template_meta meta = { .digest = "" };
    size_t max = exporter->template->trees[0].layer_count;
    int r;

    *ret = (struct origin){ .above = 0 };
    (void)snprintf(ret->name, sizeof(ret->name), "%s", exporter->template->name);
    r = meta_read(exporter, ret->name, &meta, err);
    while (r == 0 && !meta.digest[0] && meta.base[0] && ret->above < max) {
        (void)snprintf(ret->name, sizeof(ret->name), "%s", meta.base);
        ret->above++;
        r = meta_read(exporter, ret->name, &meta, err);
    }
    (void)snprintf(ret->digest, sizeof(ret->digest), "%s", meta.digest);
    return r;
}

static bool blobs_are_there(const struct exporter *exporter, const json_t *layers)
{
    const json_t *layer;
    struct err ignored;
    size_t i;

    json_array_foreach(layers, i, layer) {
        const char *digest = json_string_value(json_object_get(layer, "digest"));
        char path[IMAGE_BLOB_PATH_MAX];

        if (!digest || image_blob_path(digest, path, &ignored) < 0 ||
            faccessat(exporter->images_fd, path, R_OK, AT_SYMLINK_NOFOLLOW) < 0)
            return false;
    }
    return true;
}

/* Layers of Docker's format 2 are the same bytes as those of OCI. */
static void layer_take(struct exporter *exporter, const json_t *layer)
{
    json_t *copy = json_deep_copy(layer);
    const char *type = json_string_value(json_object_get(copy, "mediaType"));

    if (!type || strcmp(type, DOCKER_LAYER_TYPE) == 0)
        (void)json_object_set_new(copy, "mediaType", json_string(OCI_LAYER_TYPE));
    (void)json_array_append_new(exporter->layers, copy);
    exporter->ret->origin_layers++;
}

/* Takes over the layers of the image at the bottom. Returns 1, or 0 if they are not there. */
static int origin_take(struct exporter *exporter, const char *digest)
{
    cleanup_json json_t *manifest = NULL, *config = NULL;
    const json_t *layers, *diff_ids, *layer;
    struct err ignored;
    size_t i;

    if (!*digest ||
        image_manifest_read(exporter->images_fd, digest, &manifest, exporter->ret->digest,
                            &ignored) < 0 ||
        image_config_read(exporter->images_fd, digest, &config, &ignored) < 0)
        return 0;
    layers = json_object_get(manifest, "layers");
    diff_ids = json_object_get(json_object_get(config, "rootfs"), "diff_ids");
    if (!blobs_are_there(exporter, layers) || json_array_size(layers) != json_array_size(diff_ids))
        return 0;
    json_array_foreach(layers, i, layer)
        layer_take(exporter, layer);
    (void)json_array_extend(exporter->diff_ids, (json_t *)(uintptr_t)diff_ids);
    if (json_is_array(json_object_get(config, "history")))
        (void)json_array_extend(exporter->history, json_object_get(config, "history"));
    return 1;
}

/* --- layers of trees -------------------------------------------------------------------------- */

static int layer_add(struct exporter *exporter, const struct layer_tree *trees, size_t count,
                     struct err *err)
{
    cleanup_close int fd = -EBADF;
    struct layer layer = { .digest = "" };
    int r = blob_new(exporter->images_fd, &fd, err);

    if (r == 0)
        r = image_layer_write(trees, count, fd, &layer, err);
    if (r == 0)
        r = blob_name(exporter->images_fd, fd, layer.digest, err);
    if (r < 0)
        return r;
    (void)json_array_append_new(exporter->layers,
                                json_pack("{s:s, s:s, s:I}", "mediaType", OCI_LAYER_TYPE, "digest",
                                          layer.digest, "size", (json_int_t)layer.size));
    (void)json_array_append_new(exporter->diff_ids, json_string(layer.diff_id));
    (void)json_array_append_new(
        exporter->history,
        json_pack("{s:s, s:s}", "created", exporter->created, "created_by", "holt"));
    return 0;
}

/* Adds the layer at a height: 0 is the bottom of each tree. */
static int height_add(struct exporter *exporter, size_t height, struct err *err)
{
    struct layer_tree trees[TEMPLATE_TREES_MAX];
    size_t count = 0;

    for (size_t i = 0; i < exporter->template->tree_count; i++) {
        const struct template_tree *tree = &exporter->template->trees[i];

        if (height > tree->layer_count)
            continue;
        trees[count++] = (struct layer_tree){
            .target = tree->target,
            .fd = height == 0 ? tree->fd : tree->layers[tree->layer_count - height],
            .is_upper = height > 0,
        };
    }
    return layer_add(exporter, trees, count, err);
}

/* --- documents -------------------------------------------------------------------------------- */

static int document_add(struct exporter *exporter, const json_t *document, const char *type,
                        json_t **ret, struct err *err)
{
    cleanup_free char *text = json_dumps(document, JSON_COMPACT | JSON_SORT_KEYS);
    cleanup_with(digest_free_slot) struct digest *digest = digest_new();
    char name[IMAGE_DIGEST_LEN + 1] = "sha256:";
    cleanup_close int fd = -EBADF;
    int r = blob_new(exporter->images_fd, &fd, err);

    if (r < 0)
        return r;
    if (!text || !digest)
        return err_sys(err, -ENOMEM, "write the image");
    digest_add(digest, text, strlen(text));
    r = digest_hex(digest, name + strlen("sha256:"));
    if (r == 0)
        r = write_all(fd, text, strlen(text));
    if (r < 0)
        return err_sys(err, r, "write the image");
    r = blob_name(exporter->images_fd, fd, name, err);
    *ret = json_pack("{s:s, s:s, s:I}", "mediaType", type, "digest", name, "size",
                     (json_int_t)strlen(text));
    return r;
}

static json_t *env_words(const json_t *env)
{
    json_t *words = json_array();
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)env, name, value)
        (void)json_array_append_new(words, json_sprintf("%s=%s", name, json_string_value(value)));
    return words;
}

/* The settings as the configuration of processes; store/import/image_settings.c reads it. */
static json_t *process_config(const struct template_settings *settings)
{
    static const struct {
        const char *from, *to;
    } facts[] = {
        { "entrypoint", "Entrypoint" }, { "cmd", "Cmd" },       { "exposedPorts", "ExposedPorts" },
        { "volumes", "Volumes" },       { "labels", "Labels" }, { "healthcheck", "Healthcheck" },
        { "stopSignal", "StopSignal" }, { "shell", "Shell" },
    };
    json_t *config = json_object();

    if (settings->env)
        (void)json_object_set_new(config, "Env", env_words(settings->env));
    if (*settings->workdir)
        (void)json_object_set_new(config, "WorkingDir", json_string(settings->workdir));
    if (*settings->user)
        (void)json_object_set_new(config, "User", json_string(settings->user));
    for (size_t i = 0; i < ARRAY_SIZE(facts); i++) {
        json_t *value = json_object_get(settings->image, facts[i].from);

        if (value)
            (void)json_object_set(config, facts[i].to, value);
    }
    if (!json_object_get(config, "Entrypoint") && !json_object_get(config, "Cmd"))
        (void)json_object_set_new(config, "Cmd",
                                  json_array_size(settings->command) > 0
                                      ? json_deep_copy(settings->command)
                                      : json_pack("[s]", "/bin/sh"));
    return config;
}

static int config_add(struct exporter *exporter, json_t **ret, struct err *err)
{
    cleanup_with(template_settings_done) struct template_settings settings = { .object = NULL };
    cleanup_json json_t *config = NULL;
    int r = template_settings_read(exporter->store, exporter->template->name, &settings, err);

    if (r < 0)
        return r;
    config = json_pack("{s:s, s:s, s:s, s:o, s:{s:s, s:O}, s:O}", "created", exporter->created,
                       "architecture", image_arch(), "os", "linux", "config",
                       process_config(&settings), "rootfs", "type", "layers", "diff_ids",
                       exporter->diff_ids, "history", exporter->history);
    return document_add(exporter, config, OCI_TYPE "config.v1+json", ret, err);
}

static int manifest_add(struct exporter *exporter, struct err *err)
{
    cleanup_json json_t *config = NULL, *manifest = NULL, *descriptor = NULL;
    int r = config_add(exporter, &config, err);

    if (r < 0)
        return r;
    manifest = json_pack("{s:i, s:s, s:O, s:O}", "schemaVersion", 2, "mediaType",
                         OCI_TYPE "manifest.v1+json", "config", config, "layers", exporter->layers);
    r = document_add(exporter, manifest, OCI_TYPE "manifest.v1+json", &descriptor, err);
    if (r == 0)
        (void)snprintf(exporter->ret->digest, sizeof(exporter->ret->digest), "%s",
                       json_string_value(json_object_get(descriptor, "digest")));
    return r;
}

static int template_export(struct exporter *exporter, struct err *err)
{
    size_t layer_count = exporter->template->trees[0].layer_count;
    struct template_meta meta = { .size_bytes = 0 };
    struct origin origin = { .above = 0 };
    struct tm tm;
    time_t created;
    int r = origin_find(exporter, &origin, err);
    bool has_image = r == 0 && origin_take(exporter, origin.digest);

    if (r == 0)
        r = meta_read(exporter, exporter->template->name, &meta, err);
    if (r < 0)
        return r;
    if (has_image)
        (void)snprintf(exporter->ret->origin, sizeof(exporter->ret->origin), "%s", origin.name);
    if (has_image && origin.above == 0)
        return 0;
    created = meta.created_at;
    (void)strftime(exporter->created, sizeof(exporter->created), "%Y-%m-%dT%H:%M:%SZ",
                   gmtime_r(&created, &tm));
    for (size_t i = has_image ? layer_count - origin.above + 1 : 0; r == 0 && i <= layer_count; i++)
        r = height_add(exporter, i, err);
    return r < 0 ? r : manifest_add(exporter, err);
}

int image_export(struct store *store, const char *template, int images_fd, struct image_export *ret,
                 struct err *err)
{
    cleanup_with(exporter_done) struct exporter exporter = {
        .store = store,
        .images_fd = images_fd,
        .layers = json_array(),
        .diff_ids = json_array(),
        .history = json_array(),
        .ret = ret,
    };
    int r;

    *ret = (struct image_export){ .digest = "" };
    r = template_open(store, template, &exporter.template, err);
    return r < 0 ? r : template_export(&exporter, err);
}

static int blob_read(const json_t *descriptor, struct image_blob *ret, struct err *err)
{
    const char *digest = "";

    if (json_get_text(descriptor, "digest", &digest, err) < 0 ||
        json_get_u64(descriptor, "size", &ret->size, err) < 0)
        return err_wrap(err, "manifest");
    (void)snprintf(ret->digest, sizeof(ret->digest), "%s", digest);
    return 0;
}

static int manifest_size(int images_fd, struct image_parts *parts, struct err *err)
{
    cleanup_close int fd = -EBADF;
    struct stat st;
    int r = blob_open(images_fd, parts->manifest.digest, &fd, err);

    if (r < 0)
        return r;
    if (fstat(fd, &st) < 0)
        return err_sys(err, -errno, "read the manifest");
    parts->manifest.size = (uint64_t)st.st_size;
    return 0;
}

int image_parts_read(int images_fd, const char *digest, struct image_parts *ret, struct err *err)
{
    cleanup_json json_t *manifest = NULL;
    cleanup_free struct image_blob *blobs = NULL;
    struct image_parts parts = { .type = "" };
    const json_t *layers = NULL, *layer;
    const char *type = OCI_TYPE "manifest.v1+json";
    size_t i;
    int r = image_manifest_read(images_fd, digest, &manifest, parts.manifest.digest, err);

    if (r < 0 || json_get_text(manifest, "mediaType", &type, err) < 0 ||
        json_get_array(manifest, "layers", &layers, err) < 0)
        return r < 0 ? r : err_wrap(err, "manifest");
    (void)snprintf(parts.type, sizeof(parts.type), "%s", type);
    blobs = xcalloc(json_array_size(layers) + 1, sizeof(*blobs));
    json_array_foreach(layers, i, layer) {
        if (r == 0)
            r = blob_read(layer, &blobs[parts.count++], err);
    }
    if (r == 0)
        r = blob_read(json_object_get(manifest, "config"), &blobs[parts.count++], err);
    if (r == 0)
        r = manifest_size(images_fd, &parts, err);
    if (r < 0)
        return r;
    parts.blobs = TAKE_PTR(blobs);
    *ret = parts;
    return 0;
}
