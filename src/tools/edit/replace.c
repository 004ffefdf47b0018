// SPDX-License-Identifier: Apache-2.0
#include "tools/edit/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "tools/tool.h"
#include "wire/file.h"

enum { LINKS_MAX = 40, TRIES = 8, FD_PATH_MAX = 32, NEW_MODE = 0644 };

/* Opens the directory, and says what the name in it is. */
static int look(struct place *place)
{
    char *slash = strrchr(place->path, '/');

    place->name = slash + 1;
    if (place->name[0] == '\0')
        return -EISDIR;
    *slash = '\0';
    place->dir_fd = open(place->path[0] ? place->path : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    *slash = '/';
    if (place->dir_fd < 0)
        return -errno;
    place->is_new = fstatat(place->dir_fd, place->name, &place->old, AT_SYMLINK_NOFOLLOW) < 0;
    return place->is_new && errno != ENOENT ? -errno : 0;
}

/* What the link at path points to takes its place. Links of /proc say where they lead, but that is
 * no path. */
static int follow(struct place *place)
{
    char target[PATH_MAX];
    struct statfs fs;
    ssize_t len = readlinkat(place->dir_fd, place->name, target, sizeof(target) - 1);
    size_t dir_len = (size_t)(place->name - place->path), at;

    if (len <= 0)
        return len < 0 ? -errno : -ENOENT;
    if (fstatfs(place->dir_fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC)
        return -EPERM;
    place->dir_fd = fd_close(place->dir_fd);
    at = target[0] == '/' ? 0 : dir_len;
    if (at + (size_t)len >= sizeof(place->path))
        return -ENAMETOOLONG;
    memcpy(place->path + at, target, (size_t)len);
    place->path[at + (size_t)len] = '\0';
    return 0;
}

int place_find(const char *full_path, struct place *ret)
{
    int r;

    ret->dir_fd = -EBADF;
    if (snprintf(ret->path, sizeof(ret->path), "%s", full_path) >= (int)sizeof(ret->path))
        return -ENAMETOOLONG;
    r = look(ret);
    for (int links = 0; r == 0 && !ret->is_new && S_ISLNK(ret->old.st_mode); links++) {
        r = links < LINKS_MAX ? follow(ret) : -ELOOP;
        if (r == 0)
            r = look(ret);
    }
    if (r == 0 && !ret->is_new && !S_ISREG(ret->old.st_mode))
        r = S_ISDIR(ret->old.st_mode) ? -EISDIR : -EINVAL;
    return r;
}

void place_done(struct place *place)
{
    place->dir_fd = fd_close(place->dir_fd);
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

static int open_temporary(const struct place *place, char name[FD_PATH_MAX])
{
    mode_t mode = place->is_new ? NEW_MODE : place->old.st_mode & 0777;

    for (int i = 0; i < TRIES; i++) {
        uint64_t random = 0;
        int fd;

        (void)!getrandom(&random, sizeof(random), 0);
        (void)snprintf(name, FD_PATH_MAX, ".holt-%016llx", (unsigned long long)random);
        fd =
            openat(place->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd >= 0 || errno != EEXIST)
            return fd < 0 ? -errno : fd;
    }
    return -EEXIST;
}

/* Capabilities are left: they were those of another content. */
static bool is_kept(const char *name)
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

/* Attributes and the list of who may what, of which most files have none. */
static int copy_attributes(const struct place *place, int to)
{
    cleanup_close int from = openat(place->dir_fd, place->name,
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
        if (is_kept(names + at))
            r = copy_attribute(from, to, names + at);
    return r;
}

/* The owner before the mode, of which it takes bits away; the mode before a list, which has it too.
 */
static int take_over(const struct place *place, int fd)
{
    struct stat st;

    if (place->is_new)
        return 0;
    if (fstat(fd, &st) < 0)
        return -errno;
    if ((st.st_uid != place->old.st_uid || st.st_gid != place->old.st_gid) &&
        fchown(fd, place->old.st_uid, place->old.st_gid) < 0)
        return -errno;
    if ((st.st_mode & 07777) != (place->old.st_mode & 07777) &&
        fchmod(fd, place->old.st_mode & 07777) < 0)
        return -errno;
    return copy_attributes(place, fd);
}

static bool is_still(const struct place *place)
{
    struct stat st;

    return fstatat(place->dir_fd, place->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_ino == place->old.st_ino && st.st_dev == place->old.st_dev &&
           st.st_size == place->old.st_size && st.st_mtim.tv_sec == place->old.st_mtim.tv_sec &&
           st.st_mtim.tv_nsec == place->old.st_mtim.tv_nsec;
}

/* Where a file cannot be replaced: something is mounted on it, or nothing can be made beside it, as
 * in /proc. */
static int write_in_place(const struct place *place, const struct iovec *parts, size_t count)
{
    cleanup_close int fd = openat(place->dir_fd, place->name,
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

static int write_beside(const struct place *place, const struct iovec *parts, size_t count,
                        bool if_still)
{
    char name[FD_PATH_MAX];
    cleanup_close int fd = open_temporary(place, name);
    int r;

    if (fd < 0)
        return fd;
    r = write_parts(fd, parts, count);
    if (r == 0)
        r = take_over(place, fd);
    if (r == 0 && if_still && !is_still(place))
        r = -ESTALE;
    if (r == 0 && renameat(place->dir_fd, name, place->dir_fd, place->name) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(place->dir_fd, name, 0);
    return r;
}

int place_write(const struct place *place, const struct iovec *parts, size_t count, bool if_still)
{
    int r = write_beside(place, parts, count, if_still);

    return cannot_replace(r) && !place->is_new ? write_in_place(place, parts, count) : r;
}

static void tell(struct tool_reply *reply, enum file_event_kind kind, const char *path)
{
    const struct file_event event = { .kind = kind, .path = path };

    (void)file_put_event(&reply->changed, &event);
}

/* As the kernel calls it, without links and dots. */
void place_tell(const struct place *place, struct tool_reply *reply)
{
    char link[FD_PATH_MAX], path[PATH_MAX + NAME_MAX + 2];
    ssize_t len;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", place->dir_fd);
    len = readlink(link, path, PATH_MAX);
    if (len <= 0 || len >= PATH_MAX || path[0] != '/')
        return;
    (void)snprintf(path + len, sizeof(path) - (size_t)len, "%s%s", len > 1 ? "/" : "", place->name);
    tell(reply, place->is_new ? FILE_EVENT_CREATE : FILE_EVENT_WRITE, path);
}

int place_make_dirs(const char *full_path, struct tool_reply *reply)
{
    char path[PATH_MAX], real[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s", full_path);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        struct stat st;

        *slash = '\0';
        if (mkdir(path, 0755) == 0) {
            if (realpath(path, real))
                tell(reply, FILE_EVENT_CREATE, real);
        } else if (stat(path, &st) < 0) {
            return -errno;
        } else if (!S_ISDIR(st.st_mode)) {
            return -ENOTDIR;
        }
        *slash = '/';
    }
    return 0;
}
