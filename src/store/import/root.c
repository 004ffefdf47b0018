// SPDX-License-Identifier: Apache-2.0
#include "store/import/root.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "kernel/path.h"
#include "store/import/import.h"
#include "store/import/root_internal.h"

#define OVERLAY_OPAQUE "trusted.overlay.opaque"

enum { DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC };

static void set_mtime(int fd, struct timespec mtime)
{
    const struct timespec times[] = { mtime, mtime };

    /* The kernel clamps a time that the filesystem cannot store; other failures are harmless. */
    (void)futimens(fd, times);
}

static void parent_leave(struct import_root *root)
{
    if (root->parent_fd < 0)
        return;
    set_mtime(root->parent_fd, root->parent_mtime);
    root->parent_fd = fd_close(root->parent_fd);
}

void import_root_next_layer(struct import_root *root)
{
    inode_set_done(&root->written);
}

void import_root_done(struct import_root *root)
{
    parent_leave(root);
    inode_set_done(&root->written);
    buf_done(&root->implied);
}

void import_root_leave(struct import_root *root)
{
    parent_leave(root);
}

bool import_is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == 0;
}

int import_root_hide_below(struct import_root *root, int fd, struct err *err)
{
    if (fsetxattr(fd, OVERLAY_OPAQUE, "y", 1, 0) == 0)
        return 0;
    root->needs_below = errno == EOPNOTSUPP || errno == EPERM;
    return import_error(err, -errno, "hide what is below", root->parent);
}

/* What an upper layer has in the way may be a link or a whiteout of what is below. */
static int parent_error(struct import_root *root, struct err *err, int r, const char *path)
{
    root->needs_below = root->is_upper;
    switch (r) {
    case -ENOTDIR:
        return err_set(err, ERR_INVALID, "an entry is below '%s', which is not a directory",
                       import_label(path).text);
    case -EEXIST:
        return err_set(err, ERR_INVALID, "an entry is below '%s', a dangling link",
                       import_label(path).text);
    case -ELOOP:
        return err_set(err, ERR_INVALID, "an entry is below '%s', a loop of links",
                       import_label(path).text);
    default:
        return import_error(err, r, "make the directory", path);
    }
}

/* Remembers a directory whose owner and mode are those of the one below it, if there is one. */
static int implied_add(struct import_root *root, const char *path)
{
    const char kind = root->is_in_whiteout ? IMPLIED_BY_WHITEOUT : IMPLIED_BY_ENTRY;
    int r = root->is_upper ? buf_add(&root->implied, &kind, 1) : 0;

    if (r == 0 && root->is_upper)
        r = buf_add(&root->implied, path, strlen(path) + 1);
    root->needs_below = root->needs_below || r < 0;
    return r;
}

/* Creates and opens the missing directory at the end of path. */
static int missing_dir_make(struct import_root *root, int above_fd, const char *path)
{
    struct stat above;
    int fd;

    if (fstat(above_fd, &above) < 0 || mkdirat(above_fd, import_root_base(path), 0755) < 0)
        return -errno;
    set_mtime(above_fd, above.st_mtim);
    fd = implied_add(root, path);
    if (fd < 0)
        return fd;
    fd = open_in_root(root->fd, path, DIR_FLAGS, 0);
    if (fd >= 0)
        (void)fchmod(fd, 0755); /* whatever the umask */
    return fd;
}

/* Opens a directory and creates its missing components. */
static int dirs_make(struct import_root *root, const char *path, int *ret_fd, struct err *err)
{
    cleanup_close int fd = open_in_root(root->fd, ".", DIR_FLAGS, 0);
    char prefix[PATH_MAX];
    size_t len = 0;
    int next_fd, r;

    while (fd >= 0 && path[len]) {
        len += strcspn(path + len + 1, "/") + 1;
        memcpy(prefix, path, len);
        prefix[len] = '\0';
        next_fd = open_in_root(root->fd, prefix, DIR_FLAGS, 0);
        if (next_fd == -ENOENT) {
            r = budget_spend(root->budget, 1, 0, err);
            if (r < 0)
                return r;
            next_fd = missing_dir_make(root, fd, prefix);
        }
        (void)fd_close(fd);
        fd = next_fd;
    }
    if (fd < 0)
        return parent_error(root, err, fd, path);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* Makes the directory at path ("" for the root) the parent of the next entries. */
static int parent_enter_dir(struct import_root *root, const char *path, bool make, struct err *err)
{
    cleanup_close int fd = -EBADF;
    struct stat st;
    int r = 0;

    if (root->parent_fd >= 0 && strcmp(root->parent, path) == 0)
        return 0;
    parent_leave(root);
    fd = open_in_root(root->fd, *path ? path : ".", DIR_FLAGS, 0);
    if (fd == -ENOENT && !make)
        return -ENOENT;
    if (fd == -ENOENT)
        r = dirs_make(root, path, &fd, err);
    else if (fd < 0)
        r = parent_error(root, err, fd, path);
    if (r < 0)
        return r;
    if (fstat(fd, &st) < 0)
        return import_error(err, -errno, "stat", path);
    root->parent_fd = TAKE_FD(fd);
    root->parent_mtime = st.st_mtim;
    (void)memccpy(root->parent, path, '\0', sizeof(root->parent));
    return 0;
}

int import_root_enter(struct import_root *root, const char *path, bool make, struct err *err)
{
    const char *slash = strrchr(path, '/');
    char parent[PATH_MAX] = "";

    if (slash)
        memcpy(parent, path, (size_t)(slash - path));
    return parent_enter_dir(root, parent, make, err);
}

int import_root_enter_dir(struct import_root *root, const char *path, struct err *err)
{
    return parent_enter_dir(root, path, false, err);
}

int import_root_enter_whiteout(struct import_root *root, const char *path, struct err *err)
{
    int r;

    root->is_in_whiteout = true;
    r = parent_enter_dir(root, path, true, err);
    root->is_in_whiteout = false;
    return r;
}

/* Prepares a path for a new entry: creates its directory and removes an existing file. */
static int path_clear(struct import_root *root, const char *path, struct err *err)
{
    int r;

    if (*path == '\0')
        return err_set(err, ERR_INVALID, "an entry would replace the root directory");
    r = import_root_enter(root, path, true, err);
    if (r < 0)
        return r;
    r = tree_remove_at(root->parent_fd, import_root_base(path));
    return r < 0 ? import_error(err, r, "replace", path) : 0;
}

/* Records that the current layer wrote this file. */
static int written_add(struct import_root *root, int fd, const char *base, struct err *err)
{
    struct stat st;
    int r = 0;

    if (!root->is_layered)
        return 0;
    if (fstatat(fd, base, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0)
        r = -errno;
    if (r >= 0)
        r = inode_set_add(&root->written, st.st_ino);
    return r < 0 ? import_error(err, r, "record", base) : 0;
}

static int dir_make(struct import_root *root, const char *path, struct err *err)
{
    const char *base = import_root_base(path);
    bool hides_below = false;
    struct stat st;
    int r, fd;

    if (*path == '\0') {
        parent_leave(root); /* otherwise it would restore the old time of the root itself */
        fd = open_in_root(root->fd, ".", DIR_FLAGS, 0);
        return fd < 0 ? import_error(err, fd, "open", "/") : fd;
    }
    r = import_root_enter(root, path, true, err);
    if (r < 0)
        return r;
    if (fstatat(root->parent_fd, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
        st.st_mode = 0;
    if (!S_ISDIR(st.st_mode)) {
        hides_below = root->is_upper && st.st_mode != 0;
        r = path_clear(root, path, err);
        if (r < 0)
            return r;
        if (mkdirat(root->parent_fd, base, 0700) < 0)
            return import_error(err, -errno, "make", path);
    }
    fd = openat(root->parent_fd, base, DIR_FLAGS | O_NOFOLLOW);
    if (fd < 0)
        return import_error(err, -errno, "open", path);
    r = hides_below ? import_root_hide_below(root, fd, err) : 0;
    if (r < 0)
        (void)close(fd);
    return r < 0 ? r : fd;
}

static int file_make(struct import_root *root, const char *path, struct err *err)
{
    const char *base = import_root_base(path);
    int fd, r = path_clear(root, path, err);

    if (r < 0)
        return r;
    fd = openat(root->parent_fd, base, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? import_error(err, -errno, "make", path) : fd;
}

static int owner_check(const struct import_root *root, const struct import_node *node,
                       struct err *err)
{
    if (root->is_plain || (node->uid >= 0 && node->uid <= IMPORT_OWNER_MAX && node->gid >= 0 &&
                           node->gid <= IMPORT_OWNER_MAX))
        return 0;
    return err_set(err, ERR_INVALID, "entry '%s' has owner %lld:%lld; the highest id is %d",
                   import_label(node->path).text, (long long)node->uid, (long long)node->gid,
                   IMPORT_OWNER_MAX);
}

int import_root_make(struct import_root *root, const struct import_node *node, int *ret_fd,
                     struct err *err)
{
    cleanup_close int fd = -EBADF;
    int r = owner_check(root, node, err);

    if (r < 0)
        return r;
    fd = S_ISDIR(node->mode) ? dir_make(root, node->path, err) : file_make(root, node->path, err);
    if (fd < 0)
        return fd;
    r = written_add(root, fd, "", err);
    if (r < 0)
        return r;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int import_root_finish(struct import_root *root, const struct import_node *node, int fd,
                       struct err *err)
{
    if (root->is_plain)
        return 0;
    /* In this order, because chown clears the setuid bits. */
    if (fchown(fd, (uid_t)node->uid + root->owner_shift, (gid_t)node->gid + root->owner_shift) <
            0 ||
        fchmod(fd, node->mode & 07777) < 0)
        return import_error(err, -errno, "set the owner and mode of", node->path);
    set_mtime(fd, node->mtime);
    return 0;
}

/* Sets the owner and time of an entry that has no descriptor. */
static int node_finish_at(struct import_root *root, const struct import_node *node,
                          const char *base, struct err *err)
{
    const struct timespec times[] = { node->mtime, node->mtime };

    if (!root->is_plain && fchownat(root->parent_fd, base, (uid_t)node->uid + root->owner_shift,
                                    (gid_t)node->gid + root->owner_shift, AT_SYMLINK_NOFOLLOW) < 0)
        return import_error(err, -errno, "set the owner of", node->path);
    (void)utimensat(root->parent_fd, base, times, AT_SYMLINK_NOFOLLOW);
    return written_add(root, root->parent_fd, base, err);
}

int import_root_symlink(struct import_root *root, const struct import_node *node,
                        const char *target, struct err *err)
{
    const char *base = import_root_base(node->path);
    int r = owner_check(root, node, err);

    if (r < 0)
        return r;
    if (*target == '\0' || strlen(target) >= PATH_MAX)
        return err_set(err, ERR_INVALID, "entry '%s' is a link without a usable target",
                       import_label(node->path).text);
    r = path_clear(root, node->path, err);
    if (r < 0)
        return r;
    if (symlinkat(target, root->parent_fd, base) < 0)
        return import_error(err, -errno, "make the link", node->path);
    return node_finish_at(root, node, base, err);
}

int import_root_fifo(struct import_root *root, const struct import_node *node, struct err *err)
{
    const char *base = import_root_base(node->path);
    int r = owner_check(root, node, err);

    if (r < 0)
        return r;
    r = path_clear(root, node->path, err);
    if (r < 0)
        return r;
    /* fchmodat, because the umask may clear bits and a fifo cannot be opened to set them. */
    if (mkfifoat(root->parent_fd, base, 0600) < 0)
        return import_error(err, -errno, "make the fifo", node->path);
    r = node_finish_at(root, node, base, err);
    if (r < 0)
        return r;
    if (fchmodat(root->parent_fd, base, node->mode & 07777, 0) < 0)
        return import_error(err, -errno, "set the mode of", node->path);
    return 0;
}

int import_root_xattr(struct import_root *root, int fd, const char *name, const void *value,
                      size_t len, struct err *err)
{
    int r = budget_spend(root->budget, 0, len, err);

    if (r < 0)
        return r;
    if (fsetxattr(fd, name, value, len, 0) == 0 || errno == EOPNOTSUPP)
        return 0;
    return import_error(err, -errno, "set the attribute", name);
}

/* Opens the directory of a hard link's target. */
static int target_dir_open(struct import_root *root, const char *target)
{
    const char *slash = strrchr(target, '/');
    char parent[PATH_MAX] = ".";

    if (slash) {
        memcpy(parent, target, (size_t)(slash - target));
        parent[slash - target] = '\0';
    }
    return open_in_root(root->fd, parent, O_PATH | O_DIRECTORY, 0);
}

int import_root_hardlink(struct import_root *root, const char *path, const char *target,
                         struct err *err)
{
    cleanup_close int target_fd = target_dir_open(root, target);
    const char *target_base = import_root_base(target), *base = import_root_base(path);
    struct stat wanted, there;
    int r;

    if (target_fd < 0 || fstatat(target_fd, target_base, &wanted, AT_SYMLINK_NOFOLLOW) < 0 ||
        S_ISDIR(wanted.st_mode) || import_is_whiteout(&wanted)) {
        root->needs_below = root->is_upper;
        return err_set(err, ERR_INVALID,
                       "entry '%s' is a hard link to '%.60s', which is not a file",
                       import_label(path).text, import_label(target).text);
    }
    r = import_root_enter(root, path, true, err);
    if (r < 0)
        return r;
    /* A link to itself exists already; clearing the path would remove the file. */
    if (fstatat(root->parent_fd, base, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
        there.st_dev == wanted.st_dev && there.st_ino == wanted.st_ino)
        return 0;
    r = path_clear(root, path, err);
    if (r < 0)
        return r;
    if (linkat(target_fd, target_base, root->parent_fd, base, 0) < 0)
        return import_error(err, -errno, "make the hard link", path);
    return written_add(root, root->parent_fd, base, err);
}
