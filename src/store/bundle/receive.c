// SPDX-License-Identifier: Apache-2.0
/* Receives bundles, which are not trusted: they are unpacked by the code that imports images. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "store/bundle/bundle.h"
#include "store/import/extract.h"
#include "store/import/image.h"
#include "store/import/image_internal.h"
#include "store/import/import.h"
#include "store/import/root.h"
#include "store/store_internal.h"
#include "store/volume/volume.h"

enum { SPOOL_FILES_MAX = 4 * BUNDLE_LAYERS_MAX };

static int spool_unpack(const struct bundle_spool *spool, int fd, uint64_t bytes_max,
                        struct err *err)
{
    static const struct extract_options options = { .accepts = image_has_path };
    struct import_budget budget = { .bytes_max = bytes_max, .files_max = SPOOL_FILES_MAX };
    cleanup_with(import_root_done) struct import_root root = IMPORT_ROOT_INIT(spool->fd, &budget);
    int r;

    root.is_plain = true;
    r = extract_archive(fd, &root, &options, err);
    return r > 0 ? err_set(err, ERR_INVALID, "the archive is not a bundle of a sandbox") : r;
}

/* The disk of templates must have what the archive may become, before any of it is unpacked. */
static int space_check(const struct bundle_spool *spool, struct err *err)
{
    struct store_space space;
    uint64_t needed = 0;
    int r = store_space_of(spool->fd, &space, err);

    for (size_t i = 0; i < image_layer_count(spool->manifest); i++)
        needed += image_layer_size(spool->manifest, i);
    if (r == 0 && needed > space.available)
        return err_refuse(err, CAUSE_NO_SPACE,
                          "the bundle needs %llu MiB; the disk of the state directory has %llu MiB",
                          (unsigned long long)needed >> 20,
                          (unsigned long long)space.available >> 20);
    return r;
}

int bundle_receive(struct store *store, int fd, uint64_t bytes_max, struct bundle_spool *ret,
                   struct err *err)
{
    cleanup_with(bundle_spool_done) struct bundle_spool spool = { .store = store, .fd = -EBADF };
    cleanup_close int from_fd = fd;
    int r = store_temp_dir(store->templates_fd, "bundle", spool.temp, err);

    if (r < 0) {
        spool.temp[0] = '\0';
        return r;
    }
    spool.fd =
        openat(store->templates_fd, spool.temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (spool.fd < 0)
        return err_sys(err, -errno, "open the directory of a bundle");
    r = spool_unpack(&spool, from_fd, bytes_max, err);
    if (r == 0)
        r = image_layout_read(spool.fd, &spool.manifest, &spool.config, err);
    if (r == 0)
        r = space_check(&spool, err);
    if (r < 0)
        return r;
    *ret = spool;
    spool = (struct bundle_spool){ .fd = -EBADF };
    return 0;
}

void bundle_spool_done(struct bundle_spool *spool)
{
    json_decref(spool->manifest);
    json_decref(spool->config);
    (void)fd_close(spool->fd);
    if (spool->temp[0])
        (void)tree_remove_at(spool->store->templates_fd, spool->temp);
    *spool = (struct bundle_spool){ .fd = -EBADF };
}

int bundle_make_template(const struct bundle_spool *spool, const char *name,
                         const struct template_settings *settings, struct template_info *ret,
                         struct err *err)
{
    cleanup_close int fd = -EBADF;
    const struct template_source source = { .name = name, .layer_fd = &fd, .settings = settings };
    int r = image_layer_open(spool->fd, spool->manifest, 0, &fd, err);

    return r < 0 ? r : template_import(spool->store, &source, ret, err);
}

struct bundle_fill {
    const struct bundle_spool *spool;
    struct volume *volume;
    struct volume_mounts mounts;
    struct import_budget budget;
    struct import_root root;
};

int bundle_fill_begin(const struct bundle_spool *spool, struct volume *volume,
                      struct bundle_fill **ret, struct err *err)
{
    struct bundle_fill *fill = xcalloc(1, sizeof(*fill));
    int r = volume_mount(volume, -1, 0, &fill->mounts, err);

    if (r < 0) {
        free(fill);
        return r;
    }
    fill->spool = spool;
    fill->volume = volume;
    fill->budget = (struct import_budget){ .bytes_max = spool->store->template_bytes_max,
                                           .files_max = spool->store->template_files_max };
    fill->root = (struct import_root)IMPORT_ROOT_INIT(fill->mounts.fds[0], &fill->budget);
    fill->root.owner_shift = spool->store->shared_uid;
    *ret = fill;
    return 0;
}

int bundle_fill_layer(struct bundle_fill *fill, size_t index, struct err *err)
{
    cleanup_close int fd = -EBADF;
    int r = image_layer_open(fill->spool->fd, fill->spool->manifest, index, &fd, err);

    if (r == 0)
        r = image_layer_apply(fd, "of the bundle", &fill->root, err);
    import_root_done(&fill->root); /* restores the time of the last directory */
    return r;
}

void bundle_fill_end(struct bundle_fill *fill)
{
    if (!fill)
        return;
    import_root_done(&fill->root);
    volume_mounts_done(&fill->mounts);
    free(fill);
}
