// SPDX-License-Identifier: Apache-2.0
#include "store/import/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/file_copy.h"
#include "base/xalloc.h"
#include "store/import/import.h"
#include "store/import/root.h"

/* The path to which the first name of a hard-linked file was copied. */
struct copied_link {
    dev_t dev;
    ino_t ino;
    char path[];
};

void import_copy_done(struct import_copy *copy)
{
    tdestroy(copy->links, free);
    copy->links = NULL;
}

static int link_compare(const void *a, const void *b)
{
    const struct copied_link *left = a, *right = b;

    if (left->dev != right->dev)
        return left->dev < right->dev ? -1 : 1;
    if (left->ino != right->ino)
        return left->ino < right->ino ? -1 : 1;
    return 0;
}

/* Returns the path to which another name of the same file was copied, or records this one and
 * returns NULL. */
static const char *link_seen(struct import_copy *copy, const struct stat *st)
{
    size_t len = strlen(copy->path) + 1;
    cleanup_free struct copied_link *link = xcalloc(1, sizeof(*link) + len);
    struct copied_link **found;

    link->dev = st->st_dev;
    link->ino = st->st_ino;
    memcpy(link->path, copy->path, len);
    found = tsearch(link, &copy->links, link_compare);
    if (!found)
        abort();
    if (*found != link)
        return (*found)->path;
    (void)TAKE_PTR(link);
    return NULL;
}

static struct import_node copy_node(const struct import_copy *copy, const struct stat *st)
{
    struct import_node node = {
        .path = copy->path,
        .mode = st->st_mode,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .mtime = st->st_mtim,
    };

    if (copy->is_public) {
        node.uid = node.gid = 0;
        node.mode &= S_IFMT | 0755;
    }
    return node;
}

static int xattr_copy(struct import_copy *copy, int from_fd, int to_fd, const char *name,
                      struct err *err)
{
    cleanup_free char *value = NULL;
    ssize_t len;

    if (!import_keeps_xattr(name))
        return 0;
    value = xcalloc(1, XATTR_SIZE_MAX);
    len = fgetxattr(from_fd, name, value, XATTR_SIZE_MAX);
    if (len < 0 && errno == ENODATA)
        return 0;
    if (len < 0)
        return import_error(err, -errno, "read an attribute of", copy->path);
    return import_root_xattr(copy->root, to_fd, name, value, (size_t)len, err);
}

static int xattrs_copy(struct import_copy *copy, int from_fd, int to_fd, struct err *err)
{
    cleanup_free char *names = NULL;
    ssize_t len = flistxattr(from_fd, NULL, 0);
    int r;

    if (copy->is_public || len <= 0)
        return 0;
    names = xcalloc(1, (size_t)len + 1);
    len = flistxattr(from_fd, names, (size_t)len);
    for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1) {
        r = xattr_copy(copy, from_fd, to_fd, names + at, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int file_copy(struct import_copy *copy, int dir_fd, const char *name, struct err *err)
{
    cleanup_close int from_fd =
        openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    cleanup_close int to_fd = -EBADF;
    struct import_node node;
    struct stat st;
    const char *earlier;
    int r;

    if (from_fd < 0 || fstat(from_fd, &st) < 0)
        return import_error(err, -errno, "open", copy->path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_BUSY, "'%s' changed while it was copied",
                       import_label(copy->path).text);
    earlier = st.st_nlink > 1 && !copy->is_public ? link_seen(copy, &st) : NULL;
    if (earlier)
        return import_root_hardlink(copy->root, copy->path, earlier, err);
    r = budget_spend(copy->root->budget, 0, (uint64_t)st.st_size, err);
    if (r < 0)
        return err_wrap(err, "'%s'", import_label(copy->path).text);
    node = copy_node(copy, &st);
    r = import_root_make(copy->root, &node, &to_fd, err);
    if (r < 0)
        return r;
    r = file_copy_content(from_fd, to_fd, st.st_size);
    if (r < 0)
        return import_error(err, r, "copy", copy->path);
    r = import_root_finish(copy->root, &node, to_fd, err);
    return r < 0 ? r : xattrs_copy(copy, from_fd, to_fd, err);
}

static int link_copy(struct import_copy *copy, int dir_fd, const char *name, const struct stat *st,
                     struct err *err)
{
    struct import_node node = copy_node(copy, st);
    char target[PATH_MAX];
    ssize_t len = readlinkat(dir_fd, name, target, sizeof(target) - 1);

    if (len < 0)
        return import_error(err, -errno, "read the link", copy->path);
    target[len] = '\0';
    return import_root_symlink(copy->root, &node, target, err);
}

static int entry_copy(struct import_copy *copy, int dir_fd, const char *name, int depth,
                      struct err *err);

/* Takes ownership of fd. */
static int children_copy(struct import_copy *copy, int fd, int depth, struct err *err)
{
    cleanup_with(closedir_slot) DIR *dir = fdopendir(fd);
    size_t len = strlen(copy->path);
    struct dirent *entry;
    int r = 0;

    if (!dir) {
        r = import_error(err, -errno, "list", copy->path);
        (void)fd_close(fd);
        return r;
    }
    while (r >= 0 && (errno = 0, entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (len + strlen(entry->d_name) + 2 > sizeof(copy->path))
            return import_error(err, -ENAMETOOLONG, "copy", copy->path);
        (void)snprintf(copy->path + len, sizeof(copy->path) - len, "%s%s", len ? "/" : "",
                       entry->d_name);
        r = entry_copy(copy, dirfd(dir), entry->d_name, depth + 1, err);
        copy->path[len] = '\0';
    }
    if (r >= 0 && errno)
        r = import_error(err, -errno, "list", copy->path);
    return r;
}

/* Returns whether the contents of a directory are skipped; the directory itself is created. */
static bool is_left_empty(const struct import_copy *copy, int fd, const struct stat *st, int depth)
{
    struct statx stx = { 0 };

    if (copy->skip_ino != 0 && st->st_ino == copy->skip_ino && st->st_dev == copy->skip_dev)
        return true;
    if (!copy->is_public && strcmp(copy->path, "dev") == 0)
        return true;
    return depth > 0 && statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &stx) == 0 &&
           (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

static int dir_copy(struct import_copy *copy, int dir_fd, const char *name, int depth,
                    struct err *err)
{
    cleanup_close int from_fd =
        openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    cleanup_close int to_fd = -EBADF;
    struct import_node node;
    struct stat st;
    int r;

    if (from_fd < 0 || fstat(from_fd, &st) < 0)
        return import_error(err, -errno, "open", copy->path);
    if (depth > IMPORT_DEPTH_MAX)
        return err_set(err, ERR_INVALID, "directory '%s' is nested too deep",
                       import_label(copy->path).text);
    node = copy_node(copy, &st);
    r = import_root_make(copy->root, &node, &to_fd, err);
    if (r < 0)
        return r;
    r = import_root_finish(copy->root, &node, to_fd, err);
    if (r < 0)
        return r;
    r = xattrs_copy(copy, from_fd, to_fd, err);
    if (r < 0 || is_left_empty(copy, from_fd, &st, depth))
        return r;
    to_fd = fd_close(to_fd);
    return children_copy(copy, TAKE_FD(from_fd), depth, err);
}

static bool is_public(const struct stat *st)
{
    mode_t needed = S_ISDIR(st->st_mode) ? S_IROTH | S_IXOTH : S_IROTH;

    return S_ISLNK(st->st_mode) ||
           ((S_ISREG(st->st_mode) || S_ISDIR(st->st_mode)) && (st->st_mode & needed) == needed);
}

static int entry_copy(struct import_copy *copy, int dir_fd, const char *name, int depth,
                      struct err *err)
{
    struct import_node node;
    struct stat st;
    int r;

    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return import_error(err, -errno, "stat", copy->path);
    if (S_ISSOCK(st.st_mode) || (copy->is_public && !is_public(&st)))
        return 0;
    r = budget_spend(copy->root->budget, 1, 0, err);
    if (r < 0)
        return err_wrap(err, "'%s'", import_label(copy->path).text);
    switch (st.st_mode & S_IFMT) {
    case S_IFREG:
        return file_copy(copy, dir_fd, name, err);
    case S_IFDIR:
        return dir_copy(copy, dir_fd, name, depth, err);
    case S_IFLNK:
        return link_copy(copy, dir_fd, name, &st, err);
    case S_IFIFO:
        node = copy_node(copy, &st);
        return import_root_fifo(copy->root, &node, err);
    default:
        return err_set(err, ERR_INVALID, "'%s' is a device outside of /dev",
                       import_label(copy->path).text);
    }
}

int import_copy_tree(struct import_copy *copy, int dir_fd, const char *name, const char *path,
                     struct err *err)
{
    if (strlen(path) >= sizeof(copy->path))
        return import_error(err, -ENAMETOOLONG, "copy", path);
    (void)memccpy(copy->path, path, '\0', sizeof(copy->path));
    return entry_copy(copy, dir_fd, name, 0, err);
}
