// SPDX-License-Identifier: Apache-2.0
#include "base/files/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/stat.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* A sandbox may nest directories arbitrarily deep. Those deeper than this are moved to the top
 * first, so that neither descriptors nor the stack grow with the tree. */
enum { DEPTH_MAX = 32 };

struct removal {
    int top_fd;
    unsigned moved; /* directories moved to the top so far; makes their names unique */
    unsigned left;  /* entries that may still be removed */
    int first_error;
};

static int dir_make(const char *path, mode_t mode)
{
    struct stat st;

    if (mkdir(path, mode) == 0)
        return 0;
    if (errno != EEXIST)
        return -errno;
    /* A link among the operator's own directories (/var/run) is accepted. */
    if (stat(path, &st) < 0)
        return -errno;
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int tree_make(const char *path, mode_t mode)
{
    char prefix[PATH_MAX];
    size_t len = strlen(path);
    int r;

    if (*path != '/')
        return -EINVAL;
    if (len >= sizeof(prefix))
        return -ENAMETOOLONG;
    memcpy(prefix, path, len + 1);
    for (char *slash = prefix + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        r = dir_make(prefix, mode);
        if (r < 0)
            return r;
        *slash = '/';
    }
    return dir_make(prefix, mode);
}

static void record_error(struct removal *removal, int r)
{
    if (removal->first_error == 0)
        removal->first_error = r;
}

/* Opens a directory to empty it. Fails for a mount point, whose contents belong to another mount.
 */
static int open_own_dir(int dir_fd, const char *name)
{
    cleanup_close int fd =
        openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct statx stx;

    if (fd < 0)
        return -errno;
    if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_TYPE, &stx) < 0)
        return -errno;
    if (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT)
        return -EBUSY;
    return TAKE_FD(fd);
}

static int move_to_top(struct removal *removal, int dir_fd, const char *name)
{
    char moved[32];

    for (;;) {
        (void)snprintf(moved, sizeof(moved), ".deep-%u", removal->moved++);
        if (syscall(SYS_renameat2, dir_fd, name, removal->top_fd, moved, RENAME_NOREPLACE) == 0)
            return 0;
        if (errno != EEXIST)
            return -errno;
    }
}

static int dir_empty(struct removal *removal, int fd, int depth);

/* Removes what is not a directory with entries. Returns whether name was removed. */
static bool entry_unlink(struct removal *removal, int dir_fd, const char *name)
{
    /* Most directories of a removed tree are empty: try rmdir before opening. */
    bool is_removed = unlinkat(dir_fd, name, 0) == 0 || ((errno == EISDIR || errno == EPERM) &&
                                                         unlinkat(dir_fd, name, AT_REMOVEDIR) == 0);

    removal->left -= is_removed && removal->left > 0;
    return is_removed;
}

/* Returns whether name was removed. */
static bool entry_remove(struct removal *removal, int dir_fd, const char *name, int depth)
{
    cleanup_close int fd = -EBADF;
    int r = 0;

    if (entry_unlink(removal, dir_fd, name))
        return true;
    if (errno != ENOTEMPTY && errno != EEXIST) {
        record_error(removal, -errno);
        return false;
    }
    if (depth >= DEPTH_MAX)
        r = move_to_top(removal, dir_fd, name);
    else {
        fd = open_own_dir(dir_fd, name);
        r = fd < 0 ? fd : dir_empty(removal, fd, depth + 1);
        if (r >= 0 && unlinkat(dir_fd, name, AT_REMOVEDIR) < 0)
            r = -errno;
    }
    if (r < 0 && r != -EAGAIN)
        record_error(removal, r);
    return r >= 0;
}

/* One pass over a directory; *ret_removed says whether another pass may find more. */
static int dir_empty_once(struct removal *removal, int fd, int depth, bool *ret_removed)
{
    int copy_fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_with(closedir_slot) DIR *dir = copy_fd < 0 ? NULL : fdopendir(copy_fd);
    struct dirent *entry;

    if (!dir) {
        int r = -errno;

        (void)fd_close(copy_fd);
        return r;
    }
    while ((errno = 0, entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (entry_remove(removal, fd, entry->d_name, depth))
            *ret_removed = true;
        if (removal->left == 0)
            return -EAGAIN;
    }
    return -errno;
}

/* readdir may skip entries while others are removed, so this repeats until a pass removes nothing.
 */
static int dir_empty(struct removal *removal, int fd, int depth)
{
    bool removed;
    int r;

    do {
        removed = false;
        r = dir_empty_once(removal, fd, depth, &removed);
    } while (r == 0 && removed);
    return r;
}

int tree_remove_some_at(int dir_fd, const char *name, unsigned entries)
{
    struct removal removal = { .left = entries };
    cleanup_close int fd = -EBADF;
    int r;

    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    fd = open_own_dir(dir_fd, name);
    if (fd < 0)
        return fd;
    removal.top_fd = fd;
    r = dir_empty(&removal, fd, 0);
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0)
        return 0;
    if (r == -EAGAIN)
        return r;
    if (removal.first_error < 0)
        return removal.first_error;
    return r < 0 ? r : -errno;
}

int tree_remove_at(int dir_fd, const char *name)
{
    int r;

    do {
        r = tree_remove_some_at(dir_fd, name, UINT_MAX);
    } while (r == -EAGAIN);
    return r;
}
