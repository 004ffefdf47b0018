// SPDX-License-Identifier: Apache-2.0
/* A whiteout removes only files of lower layers: the archive may list it before or after files of
 * its own layer at the same path. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "store/import/import.h"
#include "store/import/root_internal.h"

/* Links can nest directories deeper than any path; each level holds a descriptor. */
enum { DEPTH_MAX = 2 * IMPORT_DEPTH_MAX };

static int lower_clear(const struct import_root *root, int fd, int depth);

/* Returns 1 if name was removed, 0 if this layer needs it, or -errno. */
static int lower_remove(const struct import_root *root, int dir_fd, const char *name, int depth)
{
    cleanup_close int fd = -EBADF;
    struct stat st;
    bool is_dir;
    int r;

    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    is_dir = S_ISDIR(st.st_mode);
    if (is_dir) {
        fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return -errno;
        r = lower_clear(root, fd, depth + 1);
        if (r < 0)
            return r;
    }
    if (inode_set_has(&root->written, st.st_ino))
        return 0;
    if (unlinkat(dir_fd, name, is_dir ? AT_REMOVEDIR : 0) == 0)
        return 1;
    return errno == ENOTEMPTY ? 0 : -errno;
}

/* One pass over a directory: returns 1 if something was removed and another pass is needed, 0, or
 * -errno. */
static int lower_clear_once(const struct import_root *root, DIR *dir, int depth)
{
    struct dirent *entry;
    int r, removed = 0;

    rewinddir(dir);
    while ((errno = 0, entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        r = lower_remove(root, dirfd(dir), entry->d_name, depth);
        if (r < 0)
            return r;
        removed |= r;
    }
    return errno ? -errno : removed;
}

/* Removes the files of lower layers from a directory and keeps its time. */
static int lower_clear(const struct import_root *root, int fd, int depth)
{
    int copy_fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_with(closedir_slot) DIR *dir = copy_fd < 0 ? NULL : fdopendir(copy_fd);
    struct timespec times[2];
    struct stat st;
    int r;

    if (!dir || fstat(fd, &st) < 0) {
        r = -errno;
        if (!dir)
            (void)fd_close(copy_fd);
        return r;
    }
    if (depth > DEPTH_MAX)
        return -ELOOP;
    do
        r = lower_clear_once(root, dir, depth);
    while (r > 0);
    times[0] = times[1] = st.st_mtim;
    (void)futimens(fd, times);
    return r;
}

/* Leaves a whiteout of overlayfs, or makes the directory opaque that this layer has there; a file
 * that it has there hides what is below anyway. */
static int upper_whiteout(struct import_root *root, const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/'), *base = import_root_base(path);
    char parent[PATH_MAX] = "";
    cleanup_close int fd = -EBADF;
    struct stat st;
    int r;

    if (slash)
        memcpy(parent, path, (size_t)(slash - path));
    r = import_root_enter_whiteout(root, parent, err);
    if (r < 0)
        return r;
    if (fstatat(root->parent_fd, base, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        r = mknodat(root->parent_fd, base, S_IFCHR, 0) < 0 ? -errno : 0;
        root->needs_below = r == -EPERM;
        return r < 0 ? import_error(err, r, "remove", path) : 0;
    }
    if (!S_ISDIR(st.st_mode))
        return 0;
    fd = openat(root->parent_fd, base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? import_error(err, -errno, "open", path) : import_root_hide_below(root, fd, err);
}

static int upper_opaque(struct import_root *root, const char *path, struct err *err)
{
    int r = import_root_enter_whiteout(root, path, err);

    if (r < 0)
        return r;
    if (*path == '\0') { /* overlayfs merges the roots in any case */
        root->needs_below = true;
        return err_set(err, ERR_UNSUPPORTED, "the layer replaces the root directory");
    }
    return import_root_hide_below(root, root->parent_fd, err);
}

int import_root_whiteout(struct import_root *root, const char *path, struct err *err)
{
    int r;

    if (root->is_upper)
        return upper_whiteout(root, path, err);
    r = import_root_enter(root, path, false, err);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return r;
    r = lower_remove(root, root->parent_fd, import_root_base(path), 0);
    return r < 0 ? import_error(err, r, "remove", path) : 0;
}

int import_root_opaque(struct import_root *root, const char *path, struct err *err)
{
    int r;

    if (root->is_upper)
        return upper_opaque(root, path, err);
    r = import_root_enter_dir(root, path, err);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return r;
    r = lower_clear(root, root->parent_fd, 0);
    return r < 0 ? import_error(err, r, "empty", path) : 0;
}
