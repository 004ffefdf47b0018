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

struct copy_state {
    struct tree_copy *copy;
    int fd;       /* the directory being filled */
    size_t depth; /* of that directory */
    char *names;  /* attribute names: XATTR_LIST_MAX bytes */
    char *value;  /* XATTR_SIZE_MAX bytes */
};

static void copy_state_done(struct copy_state *state)
{
    (void)fd_close(state->fd);
    free(state->names);
    free(state->value);
}

/* For calls without a descriptor variant for links and devices: a path to the file itself. */
static const char *proc_path(char into[static PROC_FD_BYTES], int fd)
{
    (void)snprintf(into, PROC_FD_BYTES, "/proc/self/fd/%d", fd);
    return into;
}

static int xattr_copy(struct copy_state *state, const char *from, const char *to, const char *name)
{
    ssize_t len = getxattr(from, name, state->value, XATTR_SIZE_MAX);

    if (len < 0)
        return errno == ENODATA ? 0 : -errno;
    if (setxattr(to, name, state->value, (size_t)len, 0) == 0)
        return 0;
    /* Attributes that the target does not support are dropped, except trusted ones, which overlays
     * need. */
    return errno == EOPNOTSUPP && strncmp(name, "trusted.", 8) != 0 ? 0 : -errno;
}

static int xattrs_copy(struct copy_state *state, int from_fd, int to_fd)
{
    char from[PROC_FD_BYTES], to[PROC_FD_BYTES];
    ssize_t len = listxattr(proc_path(from, from_fd), state->names, XATTR_LIST_MAX);
    int r = 0;

    if (len < 0)
        return errno == EOPNOTSUPP ? 0 : -errno;
    (void)proc_path(to, to_fd);
    for (ssize_t at = 0; r == 0 && at < len; at += (ssize_t)strlen(state->names + at) + 1)
        r = xattr_copy(state, from, to, state->names + at);
    return r;
}

static uid_t shifted(const struct copy_state *state, uid_t owner)
{
    uid_t shift = state->copy->owner_shift;

    return owner >= shift ? owner - shift : owner;
}

/* For an open file. In this order, because later steps would undo earlier ones. */
static int attributes_copy(struct copy_state *state, int from_fd, int to_fd, const struct stat *st)
{
    const struct timespec times[] = { st->st_atim, st->st_mtim };
    int r;

    if (fchown(to_fd, shifted(state, st->st_uid), shifted(state, st->st_gid)) < 0 ||
        fchmod(to_fd, st->st_mode & 07777) < 0)
        return -errno;
    r = xattrs_copy(state, from_fd, to_fd);
    if (r == 0 && futimens(to_fd, times) < 0)
        r = -errno;
    return r;
}

/* For a file that cannot be opened: a link, device or socket. */
static int node_attributes_copy(struct copy_state *state, int dir_fd, const char *name,
                                const struct stat *st)
{
    const struct timespec times[] = { st->st_atim, st->st_mtim };
    cleanup_close int from_fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    cleanup_close int to_fd = openat(state->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int r;

    if (to_fd < 0 || fchownat(state->fd, name, shifted(state, st->st_uid),
                              shifted(state, st->st_gid), AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISLNK(st->st_mode) && fchmodat(state->fd, name, st->st_mode & 07777, 0) < 0)
        return -errno;
    r = from_fd < 0 ? 0 : xattrs_copy(state, from_fd, to_fd);
    if (r == 0 && utimensat(state->fd, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        r = -errno;
    return r;
}

static int regular_copy(struct copy_state *state, int dir_fd, const char *name)
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
    to_fd = openat(state->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to_fd < 0)
        return -errno;
    r = file_copy_content(from_fd, to_fd, st.st_size);
    state->copy->bytes += (uint64_t)st.st_blocks * BLOCK_BYTES;
    return r < 0 ? r : attributes_copy(state, from_fd, to_fd, &st);
}

static int link_copy(struct copy_state *state, int dir_fd, const char *name, const struct stat *st)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(dir_fd, name, target, sizeof(target) - 1);

    if (len < 0)
        return errno == ENOENT ? 0 : -errno;
    target[len] = '\0';
    if (symlinkat(target, state->fd, name) < 0)
        return -errno;
    return node_attributes_copy(state, dir_fd, name, st);
}

static int node_copy(struct copy_state *state, int dir_fd, const char *name, const struct stat *st)
{
    if (S_ISREG(st->st_mode))
        return regular_copy(state, dir_fd, name);
    if (S_ISLNK(st->st_mode))
        return link_copy(state, dir_fd, name, st);
    if (mknodat(state->fd, name, (st->st_mode & S_IFMT) | 0600, st->st_rdev) < 0)
        return -errno;
    return node_attributes_copy(state, dir_fd, name, st);
}

/* The first name of a file is also linked into links_fd, under its inode number; further names are
 * linked to that. */
static int linked_copy(struct copy_state *state, int dir_fd, const char *name,
                       const struct stat *st)
{
    int links_fd = state->copy->links_fd;
    char first[LINK_NAME_BYTES];
    int r;

    (void)snprintf(first, sizeof(first), "%llx-%llx", (unsigned long long)st->st_dev,
                   (unsigned long long)st->st_ino);
    if (linkat(links_fd, first, state->fd, name, 0) == 0)
        return 0;
    /* At the filesystem's link limit, the link in links_fd becomes the last name. */
    if (errno == EMLINK)
        return renameat(links_fd, first, state->fd, name) < 0 ? -errno : 0;
    if (errno != ENOENT)
        return -errno;
    r = node_copy(state, dir_fd, name, st);
    if (r == 0 && linkat(state->fd, name, links_fd, first, 0) < 0 && errno != ENOENT)
        r = -errno;
    return r;
}

static int copy_entry(void *context, int dir_fd, const char *name, const struct stat *st)
{
    struct copy_state *state = context;

    state->copy->files++;
    return st->st_nlink > 1 ? linked_copy(state, dir_fd, name, st)
                            : node_copy(state, dir_fd, name, st);
}

static int dir_change(struct copy_state *state, const char *name)
{
    int fd = openat(state->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    (void)close(state->fd);
    state->fd = fd;
    return 0;
}

static int copy_enter(void *context, int fd, const char *name, const struct stat *st)
{
    struct copy_state *state = context;

    (void)fd;
    (void)st;
    if (!name)
        return 0;
    state->copy->files++;
    state->depth++;
    if (mkdirat(state->fd, name, 0700) < 0)
        return -errno;
    return dir_change(state, name);
}

/* Set after the contents: those change its times, and would inherit its default ACL. */
static int copy_leave(void *context, int fd, const struct stat *st)
{
    struct copy_state *state = context;
    int r = attributes_copy(state, fd, state->fd, st);

    if (r < 0 || state->depth == 0)
        return r;
    state->depth--;
    return dir_change(state, ".."); /* the copy is not accessible to others */
}

int tree_copy(struct tree_copy *copy, int from_fd, int to_fd)
{
    static const struct walk_ops ops = { .entry = copy_entry,
                                         .enter = copy_enter,
                                         .leave = copy_leave };
    cleanup_with(copy_state_done) struct copy_state state = {
        .copy = copy,
        .fd = openat(to_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
    };

    if (state.fd < 0)
        return -errno;
    state.names = xcalloc(1, XATTR_LIST_MAX);
    state.value = xcalloc(1, XATTR_SIZE_MAX);
    return tree_walk(from_fd, &ops, &state);
}
