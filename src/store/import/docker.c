// SPDX-License-Identifier: Apache-2.0
/* Archives of `docker save` and of podman's docker-archive: manifest.json is a list of images,
 * each {"Config": path, "RepoTags": [...], "Layers": [path, ...]}, lowest layer first. A layer
 * that occurs twice may be a link to the first. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "kernel/path.h"
#include "store/import/digest.h"
#include "store/import/image_internal.h"
#include "store/import/import.h"
#include "store/import/root.h"

#define BLOB_PREFIX "blobs/sha256/"

static int file_open(int image_fd, const char *path, int *ret_fd, struct err *err)
{
    cleanup_close int fd = -EBADF;
    char digest[IMAGE_BLOB_PATH_MAX];
    struct stat st;

    if (strncmp(path, BLOB_PREFIX, strlen(BLOB_PREFIX)) == 0) {
        (void)snprintf(digest, sizeof(digest), "sha256:%s", path + strlen(BLOB_PREFIX));
        return image_blob_open(image_fd, digest, ret_fd, err);
    }
    fd = open_in_root(image_fd, path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(err, ERR_INVALID, "the image lacks file '%s'", import_label(path).text);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static int file_json(int image_fd, const char *path, json_t **ret, struct err *err)
{
    cleanup_close int fd = -EBADF;
    int r = file_open(image_fd, path, &fd, err);

    if (r < 0)
        return r;
    return image_json_read(fd, import_label(path).text, ret, err);
}

static void tags_add(struct buf *names, const json_t *image, const char *config)
{
    const json_t *tags = json_object_get(image, "RepoTags"), *tag;
    size_t i;

    json_array_foreach(tags, i, tag) {
        if (json_is_string(tag))
            image_names_add(names, json_string_value(tag));
    }
    if (json_array_size(tags) == 0)
        image_names_add(names, config);
}

/* Returns the only image of the list. The same image may be listed twice. */
static int image_choose(const json_t *images, const json_t **ret, struct err *err)
{
    cleanup_with(buf_done) struct buf names = BUF_INIT(IMAGE_NAMES_BYTES_MAX);
    const json_t *image;
    const char *config, *first = NULL;
    bool several = false;
    size_t i;

    json_array_foreach(images, i, image) {
        config = json_string_value(json_object_get(image, "Config"));
        if (!config)
            return err_set(err, ERR_INVALID, "manifest.json lists an image without 'Config'");
        tags_add(&names, image, config);
        several = several || (first && strcmp(first, config) != 0);
        first = config;
        *ret = image;
    }
    if (!first)
        return err_set(err, ERR_INVALID, "manifest.json lists no image");
    if (several)
        return err_set(err, ERR_INVALID, "the archive has several images: %s", names.data);
    return 0;
}

static int config_read(int image_fd, const json_t *image, json_t **ret, struct err *err)
{
    return file_json(image_fd, json_string_value(json_object_get(image, "Config")), ret, err);
}

static int config_check(int image_fd, const json_t *image, struct err *err)
{
    cleanup_json json_t *config = NULL;
    int r = config_read(image_fd, image, &config, err);

    return r < 0 ? r : image_config_check(config, err);
}

/* Returns 0 for a layer that cannot be opened; layer_apply tells why. */
static uint64_t layer_size(int image_fd, const json_t *layer)
{
    const char *path = json_string_value(layer);
    cleanup_close int fd = -EBADF;
    struct err ignored = { 0 };
    struct stat st;

    if (!path || file_open(image_fd, path, &fd, &ignored) < 0 || fstat(fd, &st) < 0)
        return 0;
    return (uint64_t)st.st_size;
}

static int layer_apply(int image_fd, const json_t *layer, struct import_root *root, struct err *err)
{
    cleanup_close int fd = -EBADF;
    const char *path = json_string_value(layer);
    int r;

    if (!path)
        return err_set(err, ERR_INVALID, "manifest.json lists a layer that is not a path");
    r = file_open(image_fd, path, &fd, err);
    if (r < 0)
        return r;
    return image_layer_apply(fd, path, root, err);
}

static int layers_apply(int image_fd, const json_t *image, struct import_root *root,
                        struct err *err)
{
    const json_t *layers = NULL, *layer;
    size_t i;
    int r = json_get_array(image, "Layers", &layers, err);

    if (r < 0)
        return r;
    if (json_array_size(layers) > IMAGE_LAYERS_MAX)
        return err_set(err, ERR_EXHAUSTED, "the image has more than %d layers", IMAGE_LAYERS_MAX);
    json_array_foreach(layers, i, layer)
        budget_expect(root->budget, layer_size(image_fd, layer));
    json_array_foreach(layers, i, layer) {
        r = layer_apply(image_fd, layer, root, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Finds the only image of manifest.json; *ret_images, which the caller owns, holds it. */
static int image_find(int image_fd, json_t **ret_images, const json_t **ret, struct err *err)
{
    int r = file_json(image_fd, "manifest.json", ret_images, err);

    return r < 0 ? r : image_choose(*ret_images, ret, err);
}

int image_docker_config(int image_fd, json_t **ret, struct err *err)
{
    cleanup_json json_t *images = NULL;
    const json_t *image = NULL;
    int r = image_find(image_fd, &images, &image, err);

    return r < 0 ? r : config_read(image_fd, image, ret, err);
}

int image_apply_docker(int image_fd, struct import_root *root, struct err *err)
{
    cleanup_json json_t *images = NULL;
    const json_t *image = NULL;
    int r = image_find(image_fd, &images, &image, err);

    if (r == 0)
        r = config_check(image_fd, image, err);
    return r < 0 ? r : layers_apply(image_fd, image, root, err);
}
