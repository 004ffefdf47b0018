// SPDX-License-Identifier: Apache-2.0
/* The state directory:
 *
 *   STATE/                     0700: templates and volumes contain setuid files of other users
 *     templates/NAME/rootfs/   the tree, owners from 0 to 65535 as in the archive
 *     templates/NAME/meta.json struct template_meta
 *     templates/.import-*      being created; renamed when complete
 *     mount-points/            see store/template/mount_points.h
 *     volumes.img              a btrfs filesystem that contains the next two (see
 *                              store/backend/btrfs_image.h), or these directories:
 *     scratch/ID/              temporary volumes; emptied by store_open
 *     volumes/ID/              persistent volumes, see store/backend/layered.h
 */
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "kernel/btrfs.h"
#include "store/backend/backend.h"
#include "store/backend/btrfs_image.h"
#include "store/disk.h"
#include "store/store_internal.h"
#include "store/template/mount_points.h"
#include "store/volume/scratch.h"

/* Every backend, by its name in the configuration. */
static const struct store_ops *const backends[] = { &store_btrfs, &store_zfs, &store_dir };

DEFINE_CLEANUP(store_close, struct store *);

void store_temp_name(const char *prefix, char name[static STORE_TEMP_NAME_MAX])
{
    (void)snprintf(name, STORE_TEMP_NAME_MAX, ".%.10s-%016" PRIx64, prefix, random_u64());
}

int store_temp_dir(int dir_fd, const char *prefix, char name[static STORE_TEMP_NAME_MAX],
                   struct err *err)
{
    do {
        store_temp_name(prefix, name);
        if (mkdirat(dir_fd, name, 0700) == 0)
            return 0;
    } while (errno == EEXIST);
    return err_sys(err, -errno, "make a directory in the state directory");
}

static int state_dir_open(const char *path, int *ret_fd, struct err *err)
{
    cleanup_close int fd = -EBADF;
    struct stat st;
    int r;

    if (*path != '/')
        return err_set(err, ERR_INVALID, "state directory '%s' is not an absolute path", path);
    r = tree_make(path, 0700);
    if (r < 0)
        return err_sys(err, r, "make state directory '%s'", path);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, -errno, "open state directory '%s'", path);
    if (fstat(fd, &st) < 0)
        return err_sys(err, -errno, "stat state directory '%s'", path);
    if (st.st_uid != geteuid())
        return err_set(err, ERR_DENIED, "state directory '%s' belongs to uid %u, not to us", path,
                       st.st_uid);
    if (fchmod(fd, 0700) < 0)
        return err_sys(err, -errno, "set the mode of state directory '%s'", path);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int store_subdir(int dir_fd, const char *name, int *ret_fd, struct err *err)
{
    int fd;

    if (mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST)
        return err_sys(err, -errno, "make '%s' in the state directory", name);
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, -errno, "open '%s' in the state directory", name);
    *ret_fd = fd;
    return 0;
}

int store_each_name(int dir_fd, int (*each)(void *context, const char *name), void *context)
{
    int copy_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_with(closedir_slot) DIR *dir = copy_fd < 0 ? NULL : fdopendir(copy_fd);
    struct dirent *entry;
    int r = 0;

    if (!dir) {
        r = -errno;
        (void)fd_close(copy_fd);
        return r;
    }
    while (r >= 0 && (errno = 0, entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = each(context, entry->d_name);
    }
    if (r < 0)
        return r;
    return errno ? -errno : 0;
}

static int sweep_scratch(void *context, const char *name)
{
    return scratch_remove(context, name);
}

static int sweep_template(void *context, const char *name)
{
    const struct store *store = context;

    if (*name != '.' || template_host_is_kept(store, name))
        return 0;
    return tree_remove_at(store->templates_fd, name);
}

/* Removes leftovers of an earlier run. */
static int store_sweep(struct store *store, struct err *err)
{
    int r = store_each_name(store->scratch_fd, sweep_scratch, store);

    if (r == 0)
        r = store_each_name(store->templates_fd, sweep_template, store);
    return r < 0 ? err_sys(err, r, "remove leftovers in the state directory") : 0;
}

int store_image(struct store *store, const struct store_options *options, struct err *err)
{
    int r;

    if (store->image_fd >= 0)
        return 0;
    r = image_open(store->dir_fd, options->state_dir, &store->image, err);
    if (r == 0)
        store->image_fd = image_root(store->image);
    return r;
}

static int backend_open(struct store *store, const struct store_ops *ops,
                        const struct store_options *options, struct err *err)
{
    int r = ops->open(store, options, err);

    if (r == 0)
        store->ops = ops;
    return r;
}

/* Prefers btrfs; falls back to directories and records why btrfs is not available. */
static int backend_open_auto(struct store *store, const struct store_options *options,
                             struct err *err)
{
    struct err why = { 0 };
    int r = backend_open(store, &store_btrfs, options, &why);

    if (r == 0)
        return 0;
    if (why.kind != ERR_UNSUPPORTED) {
        *err = why;
        return r;
    }
    r = backend_open(store, &store_dir, options, err);
    if (r == 0)
        (void)snprintf(store->storage, sizeof(store->storage), "directory, because %s", why.msg);
    return r;
}

static int backend_choose(struct store *store, const struct store_options *options, struct err *err)
{
    size_t len = strcspn(options->storage, ":");

    if (strcmp(options->storage, "auto") == 0)
        return backend_open_auto(store, options, err);
    for (size_t i = 0; i < ARRAY_SIZE(backends); i++) {
        if (strlen(backends[i]->name) == len &&
            strncmp(backends[i]->name, options->storage, len) == 0)
            return backend_open(store, backends[i], options, err);
    }
    return err_set(err, ERR_INVALID, "unknown storage '%s' (auto, btrfs, zfs:POOL/DATASET or dir)",
                   options->storage);
}

/* Scratch volumes use the storage that creates and deletes files fastest, whatever the backend. */
static int scratch_open(struct store *store, const struct store_options *options, struct err *err)
{
    struct err why = { 0 };
    int r = 0;

    if (store->ops != &store_dir && !is_btrfs(store->dir_fd))
        r = store_image(store, options, &why);
    if (r < 0 && why.kind != ERR_UNSUPPORTED) {
        *err = why;
        return r;
    }
    r = store_subdir(store->image_fd >= 0 ? store->image_fd : store->dir_fd, "scratch",
                     &store->scratch_fd, err);
    if (r == 0)
        store->is_scratch_limited = scratch_has_quota(store);
    return r;
}

static int store_fill(struct store *store, const struct store_options *options, struct err *err)
{
    int r = state_dir_open(options->state_dir, &store->dir_fd, err);

    if (r == 0)
        r = store_subdir(store->dir_fd, "templates", &store->templates_fd, err);
    if (r == 0)
        r = mount_points_open(store->dir_fd, &store->points_fd, err);
    if (r == 0)
        r = backend_choose(store, options, err);
    if (r == 0)
        r = scratch_open(store, options, err);
    if (r == 0)
        r = store_sweep(store, err);
    if (r == 0)
        r = disk_open(store->dir_fd, store->image, &store->disk, err);
    if (r == 0)
        template_layers_collect(store);
    return r == 0 ? template_host_refresh(store, err) : r;
}

int store_open(const struct store_options *options, struct store **ret, struct err *err)
{
    cleanup_with(store_close_slot) struct store *store = xcalloc(1, sizeof(*store));
    int r;

    *store = (struct store){
        .dir_fd = -EBADF,
        .image_fd = -EBADF,
        .templates_fd = -EBADF,
        .points_fd = -EBADF,
        .scratch_fd = -EBADF,
        .volumes_fd = -EBADF,
        .template_bytes_max = options->template_bytes_max,
        .template_files_max = options->template_files_max,
        .lock = LOCK_INIT(LOCK_STORE),
    };
    r = store_fill(store, options, err);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(store);
    return 0;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    disk_close(store->disk);
    if (store->ops)
        store->ops->close(store);
    (void)fd_close(store->volumes_fd);
    (void)fd_close(store->scratch_fd);
    image_close(store->image);
    (void)fd_close(store->templates_fd);
    (void)fd_close(store->points_fd);
    (void)fd_close(store->dir_fd);
    lock_destroy(&store->lock);
    free(store);
}

void store_flush(struct store *store)
{
    if (store->volumes_fd >= 0)
        (void)syncfs(store->volumes_fd);
}

const char *store_storage(const struct store *store)
{
    return store->storage;
}

const char *store_backend(const struct store *store)
{
    return store->ops->name;
}

bool store_is_quota_on(const struct store *store)
{
    return store->is_quota_on;
}

bool store_has_quota(const struct store *store)
{
    return store->has_quota;
}

uid_t store_shared_uid(const struct store *store)
{
    return store->shared_uid;
}

int store_space_of(int dir_fd, struct store_space *ret, struct err *err)
{
    struct statvfs info;

    if (fstatvfs(dir_fd, &info) < 0)
        return err_sys(err, -errno, "read the free space of the volumes");
    if (info.f_flag & ST_RDONLY)
        return err_set(
            err, ERR_INTERNAL,
            "the storage became read-only after an error (see the kernel log; usually a full "
            "disk): fix that, then restart the daemon");
    *ret = (struct store_space){
        .used = (uint64_t)(info.f_blocks - info.f_bfree) * info.f_frsize,
        .available = (uint64_t)info.f_bavail * info.f_frsize,
    };
    return 0;
}

const char *store_shortage(const struct store *store, int errnum)
{
    struct statvfs info;

    if (errnum == ENOSPC && store->volumes_fd >= 0 && fstatvfs(store->volumes_fd, &info) == 0 &&
        info.f_files > 0 && info.f_favail == 0)
        return "no inodes are left";
    return strerror(errnum);
}

int store_space(struct store *store, struct store_space *ret, struct err *err)
{
    return store->ops->space(store, ret, err);
}

int store_disk(const struct store *store, struct disk_space *ret, struct err *err)
{
    int r = disk_read(store->disk, ret);

    return r < 0 ? err_sys(err, r, "read the free space of the state directory") : 0;
}

int store_state(struct store *store, char ret[static STORE_STATE_SIZE], struct err *err)
{
    struct store_space ignored;

    if (store->ops->state)
        return store->ops->state(store, ret, err);
    (void)snprintf(ret, STORE_STATE_SIZE, "ONLINE");
    return store->ops->space(store, &ignored, err);
}

bool store_is_atomic(const struct store *store)
{
    return store->ops->is_atomic;
}

bool store_needs_unmount(const struct store *store)
{
    /* Whole trees are datasets; others are layers of an overlay, whose files can be removed. */
    return store->ops->is_whole;
}
