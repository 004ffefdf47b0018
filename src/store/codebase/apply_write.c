// SPDX-License-Identifier: Apache-2.0
/* Files and links are made under a temporary name and renamed: a path is complete or as it was.
 * Nothing outside the directory is reached, whatever its owner does meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/file_copy.h"
#include "base/files/tree.h"
#include "base/io.h"
#include "kernel/path.h"
#include "store/codebase/apply_internal.h"

enum { MODE_BITS = 0777, GROUPS_MAX = 256 };

/* The rights that this thread gives up. */
struct rights {
    bool are_dropped;
    gid_t groups[GROUPS_MAX];
    long group_count;
};

/* Makes this thread use files as the owner of the directory, without capabilities for them unless
 * that is root. The system calls of libc would change all threads. */
static int rights_drop(const struct apply *apply, struct rights *ret)
{
    *ret = (struct rights){ .are_dropped = false };
    if (apply->keeps_owner)
        return 0;
    ret->group_count = syscall(SYS_getgroups, GROUPS_MAX, ret->groups);
    if (ret->group_count < 0 || syscall(SYS_setgroups, 0, NULL) < 0)
        return -errno;
    ret->are_dropped = true;
    (void)setfsgid(apply->gid);
    (void)setfsuid(apply->uid);
    return 0;
}

static void rights_restore(const struct rights *rights)
{
    if (!rights->are_dropped)
        return;
    (void)setfsuid(0);
    (void)setfsgid(0);
    (void)syscall(SYS_setgroups, rights->group_count, rights->groups);
}

void apply_clean(const struct apply *apply, const char *path)
{
    const char *name;
    cleanup_close int parent_fd = tree_parent_open(apply->dir_fd, path, &name);
    struct rights rights;

    if (parent_fd < 0 || rights_drop(apply, &rights) < 0)
        return;
    (void)unlinkat(parent_fd, apply->temporary, 0);
    rights_restore(&rights);
}

/* A forced item does not ask what is there now. */
static int item_check(const struct apply *apply, const struct apply_item *item)
{
    const struct stat *then = &item->here.st;
    struct tree_entry now;
    int r = item->is_forced ? 0 : tree_entry_find(apply->dir_fd, item->here.path, &now);

    if (r < 0 || item->is_forced)
        return r;
    if (!now.exists) /* a removal before may have taken it, and it is what was to go */
        return 0;
    if (!item->here.exists)
        return -ESTALE;
    if (S_ISDIR(now.st.st_mode) && S_ISDIR(then->st_mode))
        return 0;
    return now.st.st_ino == then->st_ino && now.st.st_size == then->st_size &&
                   now.st.st_ctim.tv_sec == then->st_ctim.tv_sec &&
                   now.st.st_ctim.tv_nsec == then->st_ctim.tv_nsec
               ? 0
               : -ESTALE;
}

/* Makes a directory above a path as `to` has it. */
static int dir_make(const struct apply *apply, const struct tree_entry *to, const char *name,
                    int parent_fd)
{
    if (mkdirat(parent_fd, name, 0700) < 0)
        return -errno;
    if (apply->keeps_owner && to->exists &&
        fchownat(parent_fd, name, to->st.st_uid, to->st.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return fchmodat(parent_fd, name, to->exists ? to->st.st_mode & MODE_BITS : 0755, 0) < 0 ? -errno
                                                                                            : 0;
}

/* Opens one directory above a path, and makes it if it is missing. */
static int parent_step(const struct apply *apply, const struct apply_item *item, const char *path)
{
    const char *name;
    cleanup_close int above_fd = -EBADF;
    struct tree_entry to;
    struct rights rights;
    int r, fd = open_no_links(apply->dir_fd, path, O_PATH | O_DIRECTORY, 0);

    if (fd >= 0 || (fd != -ENOENT && !item->is_forced))
        return fd == -ENOTDIR || fd == -ELOOP ? -ESTALE : fd;
    above_fd = tree_parent_open(apply->dir_fd, path, &name);
    r = above_fd < 0 ? above_fd : tree_entry_find(apply->to_fd, path, &to);
    if (r == 0)
        r = rights_drop(apply, &rights);
    if (r != 0)
        return r;
    if (fd != -ENOENT && unlinkat(above_fd, name, 0) < 0)
        r = -errno;
    if (r == 0)
        r = dir_make(apply, &to, name, above_fd);
    rights_restore(&rights);
    return r < 0 ? r : open_no_links(apply->dir_fd, path, O_PATH | O_DIRECTORY, 0);
}

/* Opens the directory that is to contain the path. */
static int parent_make(const struct apply *apply, const struct apply_item *item,
                       const char **ret_name)
{
    const char *path = item->here.path;
    char parent[PATH_MAX];
    int fd = tree_parent_open(apply->dir_fd, path, ret_name);

    if (fd >= 0)
        return fd;
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        if ((size_t)(slash - path) >= sizeof(parent))
            return -ENAMETOOLONG;
        memcpy(parent, path, (size_t)(slash - path));
        parent[slash - path] = '\0';
        (void)fd_close(fd);
        fd = parent_step(apply, item, parent);
        if (fd < 0)
            break;
    }
    return fd;
}

/* Makes room for something else than a directory. */
static int dir_clear(const struct apply_item *item, int parent_fd, const char *name)
{
    struct stat st;

    if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISDIR(st.st_mode))
        return 0;
    if (item->is_forced)
        return tree_remove_at(parent_fd, name);
    if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0)
        return 0;
    return errno == ENOTEMPTY ? -ESTALE : -errno;
}

static int file_fill(const struct apply *apply, const struct apply_item *item, int from_fd, int fd)
{
    const mode_t mode = item->text ? item->mode : item->to.st.st_mode;
    const struct stat *st = item->to.exists ? &item->to.st : &item->here.st;
    int r = item->text ? write_all(fd, item->text, item->text_len)
                       : file_copy_content(from_fd, fd, item->to.st.st_size);

    if (r == 0 && apply->keeps_owner && fchown(fd, st->st_uid, st->st_gid) < 0)
        r = -errno;
    if (r == 0 && fchmod(fd, mode & MODE_BITS) < 0)
        r = -errno;
    if (r == 0 && apply->keeps_owner && !item->text &&
        futimens(fd, (const struct timespec[]){ st->st_atim, st->st_mtim }) < 0)
        r = -errno;
    return r;
}

static int file_make(const struct apply *apply, const struct apply_item *item, int from_fd,
                     int parent_fd)
{
    cleanup_close int fd = openat(parent_fd, apply->temporary,
                                  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    return fd < 0 ? -errno : file_fill(apply, item, from_fd, fd);
}

static int link_make(const struct apply *apply, const struct apply_item *item, const char *target,
                     int parent_fd)
{
    if (symlinkat(target, parent_fd, apply->temporary) < 0)
        return -errno;
    return apply->keeps_owner && fchownat(parent_fd, apply->temporary, item->to.st.st_uid,
                                          item->to.st.st_gid, AT_SYMLINK_NOFOLLOW) < 0
               ? -errno
               : 0;
}

/* What is copied, opened with the rights of the daemon: the other trees are its own. */
struct content {
    int fd;
    char target[PATH_MAX];
};

static int content_open(const struct apply_item *item, struct content *ret)
{
    ret->fd = -EBADF;
    if (item->text || S_ISDIR(item->to.st.st_mode))
        return 0;
    if (S_ISLNK(item->to.st.st_mode))
        return tree_entry_read_link(&item->to, ret->target, sizeof(ret->target));
    ret->fd = tree_entry_open(&item->to);
    return ret->fd < 0 ? ret->fd : 0;
}

/* Makes a file or link and gives it its name. */
static int leaf_put(const struct apply *apply, const struct apply_item *item,
                    const struct content *content, int parent_fd, const char *name)
{
    bool is_link = !item->text && S_ISLNK(item->to.st.st_mode);
    int r;

    if (unlinkat(parent_fd, apply->temporary, 0) < 0 && errno != ENOENT)
        return -errno;
    r = is_link ? link_make(apply, item, content->target, parent_fd)
                : file_make(apply, item, content->fd, parent_fd);
    if (r == 0)
        r = dir_clear(item, parent_fd, name);
    if (r == 0 && renameat(parent_fd, apply->temporary, parent_fd, name) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(parent_fd, apply->temporary, 0);
    return r;
}

static int dir_put(const struct apply *apply, const struct apply_item *item, int parent_fd,
                   const char *name)
{
    cleanup_close int fd = -EBADF;
    struct stat st;
    int r = 0;

    if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode) &&
        unlinkat(parent_fd, name, 0) < 0)
        return -errno;
    if (mkdirat(parent_fd, name, 0700) < 0 && errno != EEXIST)
        return -errno;
    fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (apply->keeps_owner && fchown(fd, item->to.st.st_uid, item->to.st.st_gid) < 0)
        r = -errno;
    return r == 0 && fchmod(fd, item->to.st.st_mode & MODE_BITS) < 0 ? -errno : r;
}

static int item_put(const struct apply *apply, const struct apply_item *item,
                    const struct content *content)
{
    const char *name = NULL;
    cleanup_close int parent_fd = parent_make(apply, item, &name);
    struct rights rights;
    int r = parent_fd < 0 ? parent_fd : rights_drop(apply, &rights);

    if (r < 0)
        return r;
    r = !item->text && S_ISDIR(item->to.st.st_mode)
            ? dir_put(apply, item, parent_fd, name)
            : leaf_put(apply, item, content, parent_fd, name);
    rights_restore(&rights);
    return r;
}

int apply_write(const struct apply *apply, const struct apply_item *item)
{
    struct content content;
    int r = item_check(apply, item);

    if (r == 0)
        r = content_open(item, &content);
    if (r < 0)
        return r;
    r = item_put(apply, item, &content);
    (void)fd_close(content.fd);
    return r;
}

/* Removes a name with the rights of the owner. Returns 0, also if others keep a directory or the
 * name is gone, or -errno. */
static int name_remove(const struct apply *apply, int parent_fd, const char *name, int flags)
{
    struct rights rights;
    int r = rights_drop(apply, &rights);

    if (r < 0)
        return r;
    if (unlinkat(parent_fd, name, flags) < 0 && errno != ENOENT && errno != ENOTEMPTY)
        r = -errno;
    rights_restore(&rights);
    return r;
}

/* Removes the directories above a path that `to` does not have, while they are empty. */
static int parents_prune(const struct apply *apply, const char *path)
{
    char parent[PATH_MAX];
    char *slash;
    size_t len = strlen(path);
    int r = 0;

    if (len >= sizeof(parent))
        return -ENAMETOOLONG;
    memcpy(parent, path, len + 1);
    while (r == 0 && (slash = strrchr(parent, '/'))) {
        cleanup_close int fd = -EBADF;
        struct tree_entry to;
        const char *name;

        *slash = '\0';
        r = tree_entry_find(apply->to_fd, parent, &to);
        if (r < 0 || (to.exists && S_ISDIR(to.st.st_mode)))
            return r;
        fd = tree_parent_open(apply->dir_fd, parent, &name);
        if (fd < 0)
            return 0;
        r = name_remove(apply, fd, name, AT_REMOVEDIR);
    }
    return r;
}

int apply_remove(const struct apply *apply, const struct apply_item *item)
{
    const char *name;
    cleanup_close int parent_fd = -EBADF;
    int r = item_check(apply, item);

    if (r < 0)
        return r;
    parent_fd = tree_parent_open(apply->dir_fd, item->here.path, &name);
    if (parent_fd < 0)
        return parent_fd == -ENOENT || parent_fd == -ENOTDIR ? 0 : parent_fd;
    if (item->is_forced)
        r = tree_remove_at(parent_fd, name);
    else
        r = name_remove(apply, parent_fd, name, S_ISDIR(item->here.st.st_mode) ? AT_REMOVEDIR : 0);
    return r == 0 ? parents_prune(apply, item->here.path) : r;
}
