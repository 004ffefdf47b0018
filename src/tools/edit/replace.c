// SPDX-License-Identifier: Apache-2.0
#include "tools/edit/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "tools/tool.h"
#include "wire/file.h"

enum { LINKS_MAX = 40, TRIES = 8, FD_PATH_MAX = 32, NEW_MODE = 0644 };

/* Opens the directory and reads the status of the file. */
static int target_stat(struct write_target *target)
{
    char *slash = strrchr(target->path, '/');

    target->name = slash + 1;
    if (target->name[0] == '\0')
        return -EISDIR;
    *slash = '\0';
    target->dir_fd = open(target->path[0] ? target->path : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    *slash = '/';
    if (target->dir_fd < 0)
        return -errno;
    target->is_new = fstatat(target->dir_fd, target->name, &target->old, AT_SYMLINK_NOFOLLOW) < 0;
    return target->is_new && errno != ENOENT ? -errno : 0;
}

/* Replaces the path by the target of the link. The text of a link in /proc is not a path. */
static int target_follow_link(struct write_target *target)
{
    char link[PATH_MAX];
    struct statfs fs;
    ssize_t len = readlinkat(target->dir_fd, target->name, link, sizeof(link) - 1);
    size_t dir_len = (size_t)(target->name - target->path), at;

    if (len <= 0)
        return len < 0 ? -errno : -ENOENT;
    if (fstatfs(target->dir_fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC)
        return -EPERM;
    target->dir_fd = fd_close(target->dir_fd);
    at = link[0] == '/' ? 0 : dir_len;
    if (at + (size_t)len >= sizeof(target->path))
        return -ENAMETOOLONG;
    memcpy(target->path + at, link, (size_t)len);
    target->path[at + (size_t)len] = '\0';
    return 0;
}

int target_find(const char *full_path, struct write_target *ret)
{
    int r;

    ret->dir_fd = -EBADF;
    if (snprintf(ret->path, sizeof(ret->path), "%s", full_path) >= (int)sizeof(ret->path))
        return -ENAMETOOLONG;
    r = target_stat(ret);
    for (int links = 0; r == 0 && !ret->is_new && S_ISLNK(ret->old.st_mode); links++) {
        r = links < LINKS_MAX ? target_follow_link(ret) : -ELOOP;
        if (r == 0)
            r = target_stat(ret);
    }
    if (r == 0 && !ret->is_new && !S_ISREG(ret->old.st_mode))
        r = S_ISDIR(ret->old.st_mode) ? -EISDIR : -EINVAL;
    return r;
}

void target_done(struct write_target *target)
{
    target->dir_fd = fd_close(target->dir_fd);
}

static int write_parts(int fd, const struct iovec *parts, size_t count)
{
    struct iovec left[PARTS_MAX], *at = left;

    memcpy(left, parts, count * sizeof(*parts));
    while (count > 0) {
        ssize_t n = writev(fd, at, (int)count);

        if (n < 0 && errno != EINTR)
            return -errno;
        for (; n >= 0 && count > 0 && (size_t)n >= at->iov_len; count--)
            n -= (ssize_t)at++->iov_len;
        if (n > 0) {
            at->iov_base = (char *)at->iov_base + n;
            at->iov_len -= (size_t)n;
        }
    }
    return 0;
}

static int open_temporary(const struct write_target *target, char name[FD_PATH_MAX])
{
    mode_t mode = target->is_new ? NEW_MODE : target->old.st_mode & 0777;

    for (int i = 0; i < TRIES; i++) {
        int fd;

        (void)snprintf(name, FD_PATH_MAX, ".holt-%016llx", (unsigned long long)random_u64());
        fd = openat(target->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    mode);
        if (fd >= 0 || errno != EEXIST)
            return fd < 0 ? -errno : fd;
    }
    return -EEXIST;
}

/* File capabilities are not kept: they applied to the old content. */
static bool is_kept_attribute(const char *name)
{
    return strncmp(name, "user.", 5) == 0 || strcmp(name, "system.posix_acl_access") == 0;
}

static int copy_attribute(int from, int to, const char *name)
{
    cleanup_free char *value = NULL;
    ssize_t len = fgetxattr(from, name, NULL, 0);

    if (len < 0)
        return -errno;
    value = xcalloc(1, (size_t)len + 1);
    len = fgetxattr(from, name, value, (size_t)len);
    return len < 0 || fsetxattr(to, name, value, (size_t)len, 0) < 0 ? -errno : 0;
}

/* Copies extended attributes and the ACL. */
static int copy_attributes(const struct write_target *target, int to)
{
    cleanup_close int from = openat(target->dir_fd, target->name,
                                    O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
    cleanup_free char *names = NULL;
    ssize_t len = from < 0 ? -1 : flistxattr(from, NULL, 0);
    int r = 0;

    if (len <= 0)
        return len < 0 && errno != EOPNOTSUPP ? -errno : 0;
    names = xcalloc(1, (size_t)len + 1);
    len = flistxattr(from, names, (size_t)len);
    if (len < 0)
        return -errno;
    for (ssize_t at = 0; r == 0 && at < len; at += (ssize_t)strlen(names + at) + 1)
        if (is_kept_attribute(names + at))
            r = copy_attribute(from, to, names + at);
    return r;
}

/* Copies owner, mode and attributes, in this order: chown clears bits of the mode, and chmod
 * changes the mask of an ACL. */
static int target_copy_metadata(const struct write_target *target, int fd)
{
    struct stat st;

    if (target->is_new)
        return 0;
    if (fstat(fd, &st) < 0)
        return -errno;
    if ((st.st_uid != target->old.st_uid || st.st_gid != target->old.st_gid) &&
        fchown(fd, target->old.st_uid, target->old.st_gid) < 0)
        return -errno;
    if ((st.st_mode & 07777) != (target->old.st_mode & 07777) &&
        fchmod(fd, target->old.st_mode & 07777) < 0)
        return -errno;
    return copy_attributes(target, fd);
}

static bool target_is_unchanged(const struct write_target *target)
{
    struct stat st;

    return fstatat(target->dir_fd, target->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_ino == target->old.st_ino && st.st_dev == target->old.st_dev &&
           st.st_size == target->old.st_size && st.st_mtim.tv_sec == target->old.st_mtim.tv_sec &&
           st.st_mtim.tv_nsec == target->old.st_mtim.tv_nsec;
}

/* For a file that cannot be replaced: it is a mount point, or its directory allows no new files, as
 * in /proc. */
static int target_overwrite(const struct write_target *target, const struct iovec *parts,
                            size_t count)
{
    cleanup_close int fd = openat(target->dir_fd, target->name,
                                  O_WRONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    off_t len = 0;
    int r;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    for (size_t i = 0; i < count; i++)
        len += (off_t)parts[i].iov_len;
    r = write_parts(fd, parts, count);
    return r == 0 && st.st_size > len && ftruncate(fd, len) < 0 ? -errno : r;
}

static bool cannot_replace(int r)
{
    return r == -EBUSY || r == -ENOENT || r == -EACCES || r == -EPERM || r == -EROFS ||
           r == -EOPNOTSUPP;
}

static int target_replace(const struct write_target *target, const struct iovec *parts,
                          size_t count, bool if_unchanged)
{
    char name[FD_PATH_MAX];
    cleanup_close int fd = open_temporary(target, name);
    int r;

    if (fd < 0)
        return fd;
    r = write_parts(fd, parts, count);
    if (r == 0)
        r = target_copy_metadata(target, fd);
    if (r == 0 && if_unchanged && !target_is_unchanged(target))
        r = -ESTALE;
    if (r == 0 && renameat(target->dir_fd, name, target->dir_fd, target->name) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(target->dir_fd, name, 0);
    return r;
}

int target_write(const struct write_target *target, const struct iovec *parts, size_t count,
                 bool if_unchanged)
{
    int r = target_replace(target, parts, count, if_unchanged);

    return cannot_replace(r) && !target->is_new ? target_overwrite(target, parts, count) : r;
}

static void reply_add_change(struct tool_reply *reply, enum file_event_kind kind, const char *path)
{
    const struct file_event event = { .kind = kind, .path = path };

    (void)file_put_event(&reply->changed, &event);
}

/* Reports the path as the kernel resolves it, without links and dots. */
void target_report(const struct write_target *target, struct tool_reply *reply)
{
    char link[FD_PATH_MAX], path[PATH_MAX + NAME_MAX + 2];
    ssize_t len;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", target->dir_fd);
    len = readlink(link, path, PATH_MAX);
    if (len <= 0 || len >= PATH_MAX || path[0] != '/')
        return;
    (void)snprintf(path + len, sizeof(path) - (size_t)len, "%s%s", len > 1 ? "/" : "",
                   target->name);
    reply_add_change(reply, target->is_new ? FILE_EVENT_CREATE : FILE_EVENT_WRITE, path);
}

int target_make_dirs(const char *full_path, struct tool_reply *reply)
{
    char path[PATH_MAX], real[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s", full_path);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        struct stat st;

        *slash = '\0';
        if (mkdir(path, 0755) == 0) {
            if (realpath(path, real))
                reply_add_change(reply, FILE_EVENT_CREATE, real);
        } else if (stat(path, &st) < 0) {
            return -errno;
        } else if (!S_ISDIR(st.st_mode)) {
            return -ENOTDIR;
        }
        *slash = '/';
    }
    return 0;
}
