// SPDX-License-Identifier: Apache-2.0
#include "store/import/implied.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "kernel/mount.h"
#include "kernel/path.h"
#include "store/import/import.h"
#include "store/import/root.h"
#include "store/template/template.h"

enum { FD_PATH_BYTES = 32, XATTR_NAMES_MAX = 64 << 10, XATTR_VALUE_MAX = 64 << 10 };

/* Merges the layers below for reading. */
static int below_open(const int *fds, size_t count)
{
    char paths[TEMPLATE_LAYERS_MAX][FD_PATH_BYTES];
    struct mount_option options[TEMPLATE_LAYERS_MAX];
    int fd;

    if (count == 1) {
        fd = openat(fds[0], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
    }
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(paths[i], sizeof(paths[i]), "/proc/self/fd/%d", fds[i]);
        options[i] = (struct mount_option){ .key = "lowerdir+", .value = paths[i] };
    }
    return mount_new("overlay", options, count, MOUNT_ATTR_RDONLY);
}

static int xattrs_copy(int from_fd, int to_fd)
{
    cleanup_free char *names = xcalloc(1, XATTR_NAMES_MAX), *value = xcalloc(1, XATTR_VALUE_MAX);
    ssize_t len = flistxattr(from_fd, names, XATTR_NAMES_MAX);

    for (const char *name = names; len > 0 && name < names + len; name += strlen(name) + 1) {
        ssize_t size =
            import_keeps_xattr(name) ? fgetxattr(from_fd, name, value, XATTR_VALUE_MAX) : -1;

        if (size >= 0 && fsetxattr(to_fd, name, value, (size_t)size, 0) < 0)
            return -errno;
    }
    return 0;
}

static int dir_settle(int from_fd, int to_fd)
{
    struct timespec times[2];
    struct stat st;
    int r;

    if (fstat(from_fd, &st) < 0 || fchown(to_fd, st.st_uid, st.st_gid) < 0 ||
        fchmod(to_fd, st.st_mode & 07777) < 0)
        return -errno;
    r = xattrs_copy(from_fd, to_fd);
    times[0] = times[1] = st.st_mtim;
    (void)futimens(to_fd, times);
    return r;
}

/* Settles one directory ("." for the root). Returns 1 if the layer needs what is below. */
static int path_settle(struct import_root *root, int below_fd, const char *path, char kind)
{
    cleanup_close int fd = open_no_links(root->fd, path, O_RDONLY | O_DIRECTORY, 0);
    cleanup_close int from_fd = -EBADF;
    struct stat st;

    if (fd < 0) /* a later entry has replaced it */
        return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? 0 : fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (inode_set_has(&root->written, st.st_ino)) /* a later entry describes it */
        return 0;
    from_fd = open_no_links(below_fd, path, O_RDONLY | O_DIRECTORY, 0);
    if (from_fd == -ENOENT)
        return kind == IMPLIED_BY_WHITEOUT;
    if (from_fd == -ENOTDIR || from_fd == -ELOOP)
        return 1;
    return from_fd < 0 ? from_fd : dir_settle(from_fd, fd);
}

int implied_settle(struct import_root *root, const int *below_fds, size_t count, struct err *err)
{
    cleanup_close int below_fd = below_open(below_fds, count);
    const char *record = root->implied.data, *end = record + root->implied.len;
    int r;

    if (below_fd < 0)
        return err_sys(err, below_fd, "open the layers below");
    r = path_settle(root, below_fd, ".", IMPLIED_BY_ENTRY);
    for (; r == 0 && root->implied.len > 0 && record < end; record += strlen(record) + 1)
        r = path_settle(root, below_fd, record + 1, *record);
    return r < 0 ? import_error(err, r, "settle", "a directory of a layer") : r;
}
