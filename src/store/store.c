// SPDX-License-Identifier: Apache-2.0
/* The state directory:
 *
 *   STATE/                     0700: templates and volumes hold other people's setuid files
 *     templates/NAME/rootfs/   the tree, owners from 0 to 65535 as in the archive
 *     templates/NAME/meta.json struct template_meta
 *     templates/.import-*      being made; renamed into place when complete
 *     volumes.img              a btrfs filesystem that holds volumes/, see store/image.h; or
 *     volumes/NAME/            what sandboxes write
 */
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/tree.h"
#include "base/xalloc.h"
#include "store/image.h"
#include "store/store_internal.h"

static void store_close_slot(struct store **store)
{
    store_close(*store);
}

static void closedir_slot(DIR **dir)
{
    if (*dir)
        (void)closedir(*dir);
}

int store_temp_dir(int dir_fd, const char *prefix, char name[static STORE_TEMP_NAME_MAX],
                   struct err *err)
{
    uint64_t random;

    do {
        if (getrandom(&random, sizeof(random), 0) != sizeof(random))
            return err_sys(err, -errno, "read random bytes");
        (void)snprintf(name, STORE_TEMP_NAME_MAX, ".%.10s-%016" PRIx64, prefix, random);
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

static int subdir_open(int dir_fd, const char *name, int *ret_fd, struct err *err)
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

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool is_half_made(const char *name)
{
    return *name == '.';
}

static bool is_anything(const char *name)
{
    return *name != '\0';
}

/* Removes what an earlier life left behind. */
static int subdir_sweep(int dir_fd, bool (*is_garbage)(const char *name), struct err *err)
{
    int copy_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_with(closedir_slot) DIR *dir = copy_fd < 0 ? NULL : fdopendir(copy_fd);
    struct dirent *entry;
    int r;

    if (!dir) {
        r = err_sys(err, -errno, "list the state directory");
        (void)fd_close(copy_fd);
        return r;
    }
    while ((errno = 0, entry = readdir(dir))) {
        if (is_dots(entry->d_name) || !is_garbage(entry->d_name))
            continue;
        r = tree_remove_at(dir_fd, entry->d_name);
        if (r < 0)
            return err_sys(err, r, "remove the left-over '%.100s'", entry->d_name);
    }
    return errno ? err_sys(err, -errno, "list the state directory") : 0;
}

/* In an image, unless the state directory is on a filesystem that is as good, or that was asked
 * for. A host that cannot have an image uses the directory, and says why. */
static int volumes_open(struct store *store, const struct store_options *options, struct err *err)
{
    struct statfs info;
    struct err why = { 0 };
    int r;

    if (strcmp(options->storage, "dir") == 0) {
        (void)snprintf(store->storage, sizeof(store->storage), "directory, as configured");
        return subdir_open(store->dir_fd, "volumes", &store->volumes_fd, err);
    }
    if (fstatfs(store->dir_fd, &info) == 0 && info.f_type == BTRFS_SUPER_MAGIC) {
        (void)snprintf(store->storage, sizeof(store->storage), "directory on btrfs");
        return subdir_open(store->dir_fd, "volumes", &store->volumes_fd, err);
    }
    r = image_mount(store->dir_fd, options->state_dir, &store->image_fd, &why);
    if (r == 0) {
        (void)snprintf(store->storage, sizeof(store->storage), "btrfs image");
        return subdir_open(store->image_fd, "volumes", &store->volumes_fd, err);
    }
    if (why.kind != ERR_UNSUPPORTED) {
        *err = why;
        return r;
    }
    (void)snprintf(store->storage, sizeof(store->storage), "directory, because %s", why.msg);
    return subdir_open(store->dir_fd, "volumes", &store->volumes_fd, err);
}

static int store_fill(struct store *store, const struct store_options *options, struct err *err)
{
    int r = state_dir_open(options->state_dir, &store->dir_fd, err);

    if (r < 0)
        return r;
    r = subdir_open(store->dir_fd, "templates", &store->templates_fd, err);
    if (r < 0)
        return r;
    r = volumes_open(store, options, err);
    if (r < 0)
        return r;
    r = subdir_sweep(store->volumes_fd, is_anything, err);
    if (r < 0)
        return r;
    r = subdir_sweep(store->templates_fd, is_half_made, err);
    if (r < 0)
        return r;
    return template_host_refresh(store, err);
}

int store_open(const struct store_options *options, struct store **ret, struct err *err)
{
    cleanup_with(store_close_slot) struct store *store = xcalloc(1, sizeof(*store));
    int r;

    *store = (struct store){
        .dir_fd = -EBADF,
        .image_fd = -EBADF,
        .templates_fd = -EBADF,
        .volumes_fd = -EBADF,
        .template_bytes_max = options->template_bytes_max,
        .template_files_max = options->template_files_max,
        .lock = PTHREAD_MUTEX_INITIALIZER,
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
    (void)fd_close(store->volumes_fd);
    (void)fd_close(store->image_fd);
    (void)fd_close(store->templates_fd);
    (void)fd_close(store->dir_fd);
    (void)pthread_mutex_destroy(&store->lock);
    free(store);
}

const char *store_storage(const struct store *store)
{
    return store->storage;
}
