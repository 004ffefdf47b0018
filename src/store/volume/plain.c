// SPDX-License-Identifier: Apache-2.0
/* On a layered backend a plain tree is the first live tree of a volume without a template. A whole
 * backend has nothing to clone it from: there it is a directory beside the scratch volumes, where
 * owners can be mapped, without a quota. */
#include "store/volume/plain.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "kernel/mount.h"
#include "store/backend/backend.h"
#include "store/store_internal.h"

#define PLAIN_DIR "plain"

enum { TOP_MODE = 0777 };

/* Describes a plain tree to the backend. */
static struct volume plain_volume(struct store *store, const char *id)
{
    return (struct volume){ .store = store,
                            .id = (char *)(uintptr_t)id,
                            .generation = 1,
                            .last_generation = 1,
                            .dir_fd = -EBADF };
}

static int plain_dir_open(struct store *store, int *ret_fd, struct err *err)
{
    return store_subdir(store->image_fd >= 0 ? store->image_fd : store->dir_fd, PLAIN_DIR, ret_fd,
                        err);
}

static int plain_dir_make(struct store *store, const char *id, struct err *err)
{
    cleanup_close int plain_fd = -EBADF;
    int r = plain_dir_open(store, &plain_fd, err);

    if (r < 0)
        return r;
    return mkdirat(plain_fd, id, 0700) < 0 ? err_sys(err, -errno, "make tree '%s'", id) : 0;
}

static int plain_tree_make(struct store *store, const char *id, uint64_t quota_bytes,
                           struct err *err)
{
    struct volume volume = plain_volume(store, id);
    int r;

    volume.quota_bytes = store->has_quota ? quota_bytes : 0;
    r = store->ops->create(&volume, err);
    if (r < 0 && err->kind != ERR_EXISTS)
        (void)store->ops->destroy(&volume);
    return r;
}

int plain_create(struct store *store, const char *id, uint64_t quota_bytes, struct err *err)
{
    cleanup_close int fd = -EBADF;
    int r = store->ops->is_whole ? plain_dir_make(store, id, err)
                                 : plain_tree_make(store, id, quota_bytes, err);

    if (r < 0)
        return r;
    fd = plain_open(store, id);
    r = fd < 0 ? fd : 0;
    if (r == 0 && fchmod(fd, TOP_MODE) < 0)
        r = -errno;
    if (r == 0)
        return 0;
    (void)plain_destroy(store, id);
    return err_sys(err, r, "open tree '%s'", id);
}

int plain_open(struct store *store, const char *id)
{
    cleanup_close int plain_fd = -EBADF;
    struct volume volume = plain_volume(store, id);
    struct err why;
    int fd;

    if (!store->ops->is_whole)
        return store->ops->open_tree(&volume, NULL, NULL);
    if (plain_dir_open(store, &plain_fd, &why) < 0)
        return why.errnum > 0 ? -why.errnum : -EIO;
    fd = openat(plain_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int plain_mount(struct store *store, const char *id, int userns_fd, bool is_read_only, int *ret_fd,
                struct err *err)
{
    cleanup_close int dir_fd = plain_open(store, id);
    cleanup_close int mount_fd = dir_fd < 0 ? dir_fd : mount_clone(dir_fd, "", false);
    int r = mount_fd < 0 ? mount_fd : mount_set_idmap(mount_fd, userns_fd);

    if (dir_fd == -ENOENT)
        return err_set(err, ERR_NOT_FOUND, "no tree '%s' in the storage", id);
    if (r == 0)
        r = mount_set_attributes(
            mount_fd, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (is_read_only ? MOUNT_ATTR_RDONLY : 0),
            false);
    if (r < 0)
        return err_sys(err, r, "mount tree '%s'", id);
    *ret_fd = TAKE_FD(mount_fd);
    return 0;
}

int plain_destroy(struct store *store, const char *id)
{
    cleanup_close int plain_fd = -EBADF;
    struct volume volume = plain_volume(store, id);
    struct err ignored;

    if (!store->ops->is_whole)
        return store->ops->destroy(&volume);
    return plain_dir_open(store, &plain_fd, &ignored) < 0 ? -EIO : tree_remove_at(plain_fd, id);
}

int plain_each(struct store *store, int (*each)(void *context, const char *id), void *context,
               struct err *err)
{
    cleanup_close int plain_fd = -EBADF;
    int r = store->ops->is_whole ? plain_dir_open(store, &plain_fd, err) : 0;

    if (r < 0 || !store->ops->is_whole)
        return r;
    r = store_each_name(plain_fd, each, context);
    return r < 0 ? err_sys(err, r, "list the shared volumes") : 0;
}
