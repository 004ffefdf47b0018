// SPDX-License-Identifier: Apache-2.0
/* A layer's name is the digest of its owner and of the blobs up to it, so the next image that
 * begins with the same blobs finds it. It is held from before the look until something is based on
 * it. */
#include "store/import/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "kernel/path.h"
#include "store/import/digest.h"
#include "store/import/image_internal.h"
#include "store/import/implied.h"
#include "store/import/import.h"
#include "store/import/work.h"

/* The rest of TEMPLATE_LAYERS_MAX is for commits on top. */
enum { SHARED_LAYERS_MAX = 15, THREADS_MAX = 4, NAME_DIGITS = 40 };

struct layer {
    char name[TEMPLATE_NAME_MAX + 1];
    const char *digest; /* of the blob */
    bool is_there;      /* another image has it */
    int fd;             /* of its tree */
    struct import import;
    struct template_meta meta;
    int result;
    struct err err;
};

struct image_layers {
    struct store *store;
    json_t *manifest;
    int image_fd;
    struct layer *items;
    size_t count, held;
    struct import_total total;
    atomic_size_t next; /* to be unpacked */
    atomic_bool has_failed;
};

/* A thread that unpacks layers; the first one is the caller's own and reports the progress. */
struct unpacker {
    struct image_layers *layers;
    struct thread thread;
    template_progress_fn progress;
    void *context;
};

void image_layers_free(struct image_layers *layers)
{
    if (!layers)
        return;
    for (size_t i = 0; i < layers->count; i++) {
        (void)fd_close(layers->items[i].fd);
        import_done(&layers->items[i].import);
    }
    while (layers->held > 0)
        template_hold_drop(layers->store, layers->items[--layers->held].name);
    json_decref(layers->manifest);
    free(layers->items);
    free(layers);
}

DEFINE_CLEANUP(image_layers_free, struct image_layers *);

/* --- which layers ----------------------------------------------------------------------------- */

static int layer_name(const char *owner, const char *below, struct layer *layer, struct err *err)
{
    cleanup_with(digest_free_slot) struct digest *digest = digest_new();
    char hex[DIGEST_HEX_LEN + 1];

    if (!digest)
        return err_sys(err, -ENOMEM, "name a layer");
    digest_add(digest, owner, strlen(owner) + 1);
    digest_add(digest, below, strlen(below) + 1);
    digest_add(digest, layer->digest, strlen(layer->digest) + 1);
    if (digest_hex(digest, hex) < 0)
        return err_sys(err, -EIO, "name a layer");
    (void)snprintf(layer->name, sizeof(layer->name), TEMPLATE_LAYER_PREFIX "%.*s", NAME_DIGITS,
                   hex);
    return 0;
}

/* Reads the list of layers. Returns 1 if there are too many, or none. */
static int layers_list(struct image_layers *layers, const struct template_source *source,
                       struct err *err)
{
    const json_t *list = NULL, *descriptor;
    size_t i;
    int r = json_get_array(layers->manifest, "layers", &list, err);

    if (r < 0)
        return r;
    if (json_array_size(list) == 0 || json_array_size(list) > SHARED_LAYERS_MAX)
        return 1;
    layers->items = xcalloc(json_array_size(list), sizeof(*layers->items));
    json_array_foreach(list, i, descriptor) {
        struct layer *layer = &layers->items[i];

        *layer = (struct layer){
            .fd = -EBADF,
            .import = IMPORT_INIT(layers->store, layers->store->template_bytes_max,
                                  layers->store->template_files_max),
        };
        layers->count++;
        layer->digest = json_string_value(json_object_get(descriptor, "digest"));
        if (!layer->digest)
            return err_set(err, ERR_INVALID, "the image refers to a blob without a digest");
        r = layer_name(source->owner, i > 0 ? layers->items[i - 1].name : "", layer, err);
        if (r < 0)
            return r;
        layer->import.budget.total = &layers->total;
        layers->total.source_total += image_layer_size(layers->manifest, i);
    }
    return 0;
}

/* Opens the tree of a layer that is there. */
static int layer_open(struct image_layers *layers, struct layer *layer, struct err *err)
{
    bool is_bottom = layer == layers->items;
    cleanup_close int dir_fd =
        open_no_links(layers->store->templates_fd, layer->name, O_PATH | O_DIRECTORY, 0);
    int r;

    if (dir_fd < 0)
        return err_sys(err, dir_fd, "open a layer");
    r = template_meta_read(dir_fd, &layer->meta, err);
    if (r < 0)
        return err_wrap(err, "a layer");
    layer->fd =
        open_no_links(dir_fd, is_bottom ? "rootfs" : "layers/root", O_RDONLY | O_DIRECTORY, 0);
    if (layer->fd < 0)
        return err_sys(err, layer->fd, "open a layer");
    layer->is_there = true;
    return budget_spend(&layer->import.budget, layer->meta.files, layer->meta.size_bytes, err);
}

/* Holds all layers and finds those that are there. */
static int layers_find(struct image_layers *layers, struct err *err)
{
    for (size_t i = 0; i < layers->count; i++) {
        struct layer *layer = &layers->items[i];
        int r = 0;

        template_hold(layers->store, layer->name);
        layers->held++;
        if (template_exists(layers->store, layer->name)) {
            r = layer_open(layers, layer, err);
            budget_read(&layer->import.budget, image_layer_size(layers->manifest, i));
        }
        if (r < 0)
            return r;
    }
    return 0;
}

/* --- unpacking -------------------------------------------------------------------------------- */

static int layer_unpack(struct unpacker *unpacker, size_t index)
{
    struct image_layers *layers = unpacker->layers;
    struct layer *layer = &layers->items[index];
    cleanup_close int blob_fd = -EBADF;
    int r = index == 0 ? import_start(&layer->import, &layer->err)
                       : import_start_upper(&layer->import, &layer->err);

    layer->import.budget.progress = unpacker->progress;
    layer->import.budget.context = unpacker->context;
    layer->import.root.is_layered = true;
    if (r == 0)
        r = image_blob_open(layers->image_fd, layer->digest, &blob_fd, &layer->err);
    if (r == 0)
        r = image_layer_apply(blob_fd, layer->digest, &layer->import.root, &layer->err);
    import_root_leave(&layer->import.root);
    if (r == 0)
        layer->fd = fcntl(layer->import.root_fd, F_DUPFD_CLOEXEC, 3);
    return r;
}

static void unpacker_run(void *argument)
{
    struct unpacker *unpacker = argument;
    struct image_layers *layers = unpacker->layers;
    size_t index;

    while (!atomic_load(&layers->has_failed) &&
           (index = atomic_fetch_add(&layers->next, 1)) < layers->count) {
        struct layer *layer = &layers->items[index];

        if (!layer->is_there)
            layer->result = layer_unpack(unpacker, index);
        if (layer->result < 0)
            atomic_store(&layers->has_failed, true);
    }
}

static size_t threads_wanted(const struct image_layers *layers)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t missing = 0, wanted = processors > THREADS_MAX ? THREADS_MAX : (size_t)processors;

    for (size_t i = 0; i < layers->count; i++)
        missing += !layers->items[i].is_there;
    return missing < wanted ? missing : wanted;
}

/* Unpacks all layers that are not there. Returns 1 if one needs those below it. */
static int layers_unpack(struct image_layers *layers, const struct template_source *source,
                         struct err *err)
{
    struct unpacker unpackers[THREADS_MAX] = { { .thread = { .is_started = false } } };
    size_t count = threads_wanted(layers);

    for (size_t i = 0; i < THREADS_MAX; i++)
        unpackers[i].layers = layers;
    unpackers[0].progress = source->progress;
    unpackers[0].context = source->context;
    for (size_t i = 1; i < count; i++)
        if (thread_start(&unpackers[i].thread, "holt-unpack", unpacker_run, &unpackers[i]) < 0)
            break; /* the others do its work */
    unpacker_run(&unpackers[0]);
    for (size_t i = 1; i < THREADS_MAX; i++)
        thread_join(&unpackers[i].thread);
    for (size_t i = 0; i < layers->count; i++)
        if (layers->items[i].import.root.needs_below)
            return 1;
    for (size_t i = 0; i < layers->count; i++) {
        if (layers->items[i].result < 0) {
            *err = layers->items[i].err;
            return layers->items[i].result;
        }
    }
    return 0;
}

/* Gives the directories that a layer only implies the owners and modes that they have below. */
static int layers_settle(struct image_layers *layers, struct err *err)
{
    int fds[SHARED_LAYERS_MAX]; /* topmost first */
    int r = 0;

    for (size_t i = 0; r == 0 && i < layers->count; i++) {
        if (i > 0 && !layers->items[i].is_there)
            r = implied_settle(&layers->items[i].import.root, fds, i, err);
        memmove(fds + 1, fds, i * sizeof(fds[0]));
        fds[0] = layers->items[i].fd;
    }
    return r;
}

/* --- publishing ------------------------------------------------------------------------------- */

static int layers_seal(struct image_layers *layers, struct err *err)
{
    for (size_t i = 0; i < layers->count; i++) {
        struct layer *layer = &layers->items[i];
        int r;

        if (layer->is_there)
            continue;
        layer->meta = (struct template_meta){ .size_bytes = layer->import.budget.bytes,
                                              .files = layer->import.budget.files,
                                              .created_at = time(NULL) };
        if (i > 0)
            memcpy(layer->meta.base, layers->items[i - 1].name, sizeof(layer->meta.base));
        r = template_meta_write(layer->import.fd, &layer->meta, err);
        if (r < 0)
            return r;
    }
    if (syncfs(layers->store->templates_fd) < 0)
        return import_error(err, -errno, "write", "the layers");
    return 0;
}

/* Names the layers, lowest first, so that none is without its base. Another pull may have been
 * faster. */
static int layers_name(struct image_layers *layers, struct err *err)
{
    int templates_fd = layers->store->templates_fd;

    for (size_t i = 0; i < layers->count; i++) {
        struct layer *layer = &layers->items[i];

        if (layer->is_there)
            continue;
        if (renameat2(templates_fd, layer->import.temp, templates_fd, layer->name,
                      RENAME_NOREPLACE) == 0)
            layer->import.temp[0] = '\0';
        else if (errno != EEXIST)
            return err_sys(err, -errno, "name a layer");
        fault_point("pull.layer");
    }
    return 0;
}

/* Makes the template an empty one on top of the last layer. */
static int template_base(struct import *import, const struct image_layers *layers, struct err *err)
{
    import->budget.bytes = import->budget.files = 0;
    for (size_t i = 0; i < layers->count; i++) {
        import->budget.bytes += layers->items[i].meta.size_bytes;
        import->budget.files += layers->items[i].meta.files;
    }
    import->budget.source_bytes = import->budget.source_total = layers->total.source_total;
    memcpy(import->base, layers->items[layers->count - 1].name, sizeof(import->base));
    if (unlinkat(import->fd, "rootfs", AT_REMOVEDIR) < 0 || mkdirat(import->fd, "layers", 0700) < 0)
        return import_error(err, -errno, "make", "the template");
    return 0;
}

int image_layers_import(struct import *import, const struct template_source *source,
                        struct err *err)
{
    cleanup_with(image_layers_free_slot) struct image_layers *layers = xcalloc(1, sizeof(*layers));
    char digest[IMAGE_DIGEST_LEN + 1];
    int r;

    layers->store = import->store;
    layers->image_fd = source->image_fd;
    r = image_manifest_read(source->image_fd, source->digest, &layers->manifest, digest, err);
    if (r == 0)
        r = image_manifest_check(source->image_fd, layers->manifest, err);
    if (r == 0)
        r = layers_list(layers, source, err);
    if (r == 0)
        r = layers_find(layers, err);
    if (r == 0)
        r = layers_unpack(layers, source, err);
    if (r == 0)
        r = layers_settle(layers, err);
    if (r == 0)
        r = layers_seal(layers, err);
    if (r == 0)
        r = layers_name(layers, err);
    if (r == 0)
        r = template_base(import, layers, err);
    if (r == 0)
        import->layers = TAKE_PTR(layers);
    return r;
}
