// SPDX-License-Identifier: Apache-2.0
#include "base/files/tree_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/file_copy.h"
#include "base/files/walk.h"
#include "base/xalloc.h"

enum { PROC_FD_BYTES = 32, LINK_NAME_BYTES = 48, BLOCK_BYTES = 512 };

struct work {
    struct tree_copy *copy;
    int fd;       /* the directory that is being filled */
    size_t depth; /* of it */
    char *names;  /* of attributes: XATTR_LIST_MAX bytes */
    char *value;  /* XATTR_SIZE_MAX bytes */
};

static void work_done(struct work *work)
{
    (void)fd_close(work->fd);
    free(work->names);
    free(work->value);
}

/* What a call that knows no descriptors of links and devices takes for one: the file itself. */
static const char *proc_path(char into[static PROC_FD_BYTES], int fd)
{
    (void)snprintf(into, PROC_FD_BYTES, "/proc/self/fd/%d", fd);
    return into;
}

static int xattr_copy(struct work *work, const char *from, const char *to, const char *name)
{
    ssize_t len = getxattr(from, name, work->value, XATTR_SIZE_MAX);

    if (len < 0)
        return errno == ENODATA ? 0 : -errno;
    if (setxattr(to, name, work->value, (size_t)len, 0) == 0)
        return 0;
    /* Others may mean nothing where the copy is; trusted ones are what overlays are made of. */
    return errno == EOPNOTSUPP && strncmp(name, "trusted.", 8) != 0 ? 0 : -errno;
}

static int xattrs_copy(struct work *work, int from_fd, int to_fd)
{
    char from[PROC_FD_BYTES], to[PROC_FD_BYTES];
    ssize_t len = listxattr(proc_path(from, from_fd), work->names, XATTR_LIST_MAX);
    int r = 0;

    if (len < 0)
        return errno == EOPNOTSUPP ? 0 : -errno;
    (void)proc_path(to, to_fd);
    for (ssize_t at = 0; r == 0 && at < len; at += (ssize_t)strlen(work->names + at) + 1)
        r = xattr_copy(work, from, to, work->names + at);
    return r;
}

static uid_t shifted(const struct work *work, uid_t owner)
{
    uid_t shift = work->copy->owner_shift;

    return owner >= shift ? owner - shift : owner;
}

/* Of something that is open, in the order in which none undoes the one before. */
static int attributes_copy(struct work *work, int from_fd, int to_fd, const struct stat *st)
{
    const struct timespec times[] = { st->st_atim, st->st_mtim };
    int r;

    if (fchown(to_fd, shifted(work, st->st_uid), shifted(work, st->st_gid)) < 0 ||
        fchmod(to_fd, st->st_mode & 07777) < 0)
        return -errno;
    r = xattrs_copy(work, from_fd, to_fd);
    if (r == 0 && futimens(to_fd, times) < 0)
        r = -errno;
    return r;
}

/* Of something that cannot be opened: a link, a device, a socket. */
static int node_attributes_copy(struct work *work, int dir_fd, const char *name,
                                const struct stat *st)
{
    const struct timespec times[] = { st->st_atim, st->st_mtim };
    cleanup_close int from_fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    cleanup_close int to_fd = openat(work->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int r;

    if (to_fd < 0 || fchownat(work->fd, name, shifted(work, st->st_uid), shifted(work, st->st_gid),
                              AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISLNK(st->st_mode) && fchmodat(work->fd, name, st->st_mode & 07777, 0) < 0)
        return -errno;
    r = from_fd < 0 ? 0 : xattrs_copy(work, from_fd, to_fd);
    if (r == 0 && utimensat(work->fd, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        r = -errno;
    return r;
}

static int regular_copy(struct work *work, int dir_fd, const char *name)
{
    cleanup_close int from_fd =
        openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_NOATIME | O_CLOEXEC);
    cleanup_close int to_fd = -EBADF;
    struct stat st;
    int r;

    if (from_fd < 0 && errno == ENOENT)
        return 0;
    if (from_fd < 0 || fstat(from_fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -ESTALE;
    to_fd = openat(work->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to_fd < 0)
        return -errno;
    r = file_copy_content(from_fd, to_fd, st.st_size);
    work->copy->bytes += (uint64_t)st.st_blocks * BLOCK_BYTES;
    return r < 0 ? r : attributes_copy(work, from_fd, to_fd, &st);
}

static int link_copy(struct work *work, int dir_fd, const char *name, const struct stat *st)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(dir_fd, name, target, sizeof(target) - 1);

    if (len < 0)
        return errno == ENOENT ? 0 : -errno;
    target[len] = '\0';
    if (symlinkat(target, work->fd, name) < 0)
        return -errno;
    return node_attributes_copy(work, dir_fd, name, st);
}

static int node_copy(struct work *work, int dir_fd, const char *name, const struct stat *st)
{
    if (S_ISREG(st->st_mode))
        return regular_copy(work, dir_fd, name);
    if (S_ISLNK(st->st_mode))
        return link_copy(work, dir_fd, name, st);
    if (mknodat(work->fd, name, (st->st_mode & S_IFMT) | 0600, st->st_rdev) < 0)
        return -errno;
    return node_attributes_copy(work, dir_fd, name, st);
}

/* The first name of a file goes to links_fd as well, under its number; the others are linked to
 * that. */
static int linked_copy(struct work *work, int dir_fd, const char *name, const struct stat *st)
{
    int links_fd = work->copy->links_fd;
    char first[LINK_NAME_BYTES];
    int r;

    (void)snprintf(first, sizeof(first), "%llx-%llx", (unsigned long long)st->st_dev,
                   (unsigned long long)st->st_ino);
    if (linkat(links_fd, first, work->fd, name, 0) == 0)
        return 0;
    /* As many names as the filesystem allows: then the one over there becomes the last. */
    if (errno == EMLINK)
        return renameat(links_fd, first, work->fd, name) < 0 ? -errno : 0;
    if (errno != ENOENT)
        return -errno;
    r = node_copy(work, dir_fd, name, st);
    if (r == 0 && linkat(work->fd, name, links_fd, first, 0) < 0 && errno != ENOENT)
        r = -errno;
    return r;
}

static int copy_entry(void *context, int dir_fd, const char *name, const struct stat *st)
{
    struct work *work = context;

    work->copy->files++;
    return st->st_nlink > 1 ? linked_copy(work, dir_fd, name, st)
                            : node_copy(work, dir_fd, name, st);
}

static int move_to(struct work *work, const char *name)
{
    int fd = openat(work->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    (void)close(work->fd);
    work->fd = fd;
    return 0;
}

static int copy_enter(void *context, int fd, const char *name, const struct stat *st)
{
    struct work *work = context;

    (void)fd;
    (void)st;
    if (!name)
        return 0;
    work->copy->files++;
    work->depth++;
    if (mkdirat(work->fd, name, 0700) < 0)
        return -errno;
    return move_to(work, name);
}

/* After what is in it: that would change its times, and inherit its default rights. */
static int copy_leave(void *context, int fd, const struct stat *st)
{
    struct work *work = context;
    int r = attributes_copy(work, fd, work->fd, st);

    if (r < 0 || work->depth == 0)
        return r;
    work->depth--;
    return move_to(work, ".."); /* nobody else moves what is being made */
}

int tree_copy(struct tree_copy *copy, int from_fd, int to_fd)
{
    static const struct walk_ops ops = { .entry = copy_entry,
                                         .enter = copy_enter,
                                         .leave = copy_leave };
    cleanup_with(work_done) struct work work = {
        .copy = copy,
        .fd = openat(to_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
    };

    if (work.fd < 0)
        return -errno;
    work.names = xcalloc(1, XATTR_LIST_MAX);
    work.value = xcalloc(1, XATTR_SIZE_MAX);
    return tree_walk(from_fd, &ops, &work);
}
