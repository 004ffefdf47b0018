// SPDX-License-Identifier: Apache-2.0
#include "store/codebase/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/path.h"
#include "store/diff/diff_internal.h"

enum { MODE_BITS = 0777 };

static bool is_absent(int r)
{
    return r == -ENOENT || r == -ENOTDIR || r == -ELOOP;
}

int tree_entry_find(int tree_fd, const char *path, struct tree_entry *ret)
{
    struct tree_entry entry = { .tree_fd = tree_fd, .path = path };
    cleanup_close int fd = open_no_links(tree_fd, *path ? path : ".", O_PATH, 0);

    if (fd < 0 && !is_absent(fd))
        return fd;
    if (fd >= 0 && fstat(fd, &entry.st) < 0)
        return -errno;
    entry.exists = fd >= 0;
    *ret = entry;
    return 0;
}

int tree_entry_open(const struct tree_entry *entry)
{
    cleanup_close int fd =
        open_no_links(entry->tree_fd, entry->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    struct stat st;

    if (fd < 0)
        return is_absent(fd) ? -ESTALE : fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_ino != entry->st.st_ino || st.st_dev != entry->st.st_dev || !S_ISREG(st.st_mode))
        return -ESTALE;
    return TAKE_FD(fd);
}

int tree_entry_read_link(const struct tree_entry *entry, char *into, size_t size)
{
    cleanup_close int fd = open_no_links(entry->tree_fd, entry->path, O_PATH, 0);
    ssize_t len;

    if (fd < 0)
        return is_absent(fd) ? -ESTALE : fd;
    len = readlinkat(fd, "", into, size);
    if (len < 0)
        return errno == EINVAL || errno == ENOENT ? -ESTALE : -errno;
    if ((size_t)len >= size)
        return -ENAMETOOLONG;
    into[len] = '\0';
    return 0;
}

/* A file that changes while it is read differs. */
static int same_content(const struct tree_entry *a, const struct tree_entry *b)
{
    cleanup_close int a_fd = -EBADF, b_fd = -EBADF;

    if (a->st.st_size != b->st.st_size)
        return 0;
    a_fd = tree_entry_open(a);
    b_fd = a_fd < 0 ? a_fd : tree_entry_open(b);
    if (b_fd < 0)
        return b_fd == -ESTALE ? 0 : b_fd;
    return diff_content_same(a_fd, b_fd, (uint64_t)a->st.st_size);
}

static int same_target(const struct tree_entry *a, const struct tree_entry *b)
{
    char a_target[PATH_MAX], b_target[PATH_MAX];
    int r = tree_entry_read_link(a, a_target, sizeof(a_target));

    if (r == 0)
        r = tree_entry_read_link(b, b_target, sizeof(b_target));
    if (r < 0)
        return r == -ESTALE ? 0 : r;
    return strcmp(a_target, b_target) == 0;
}

int tree_entry_same(const struct tree_entry *a, const struct tree_entry *b, bool owner_counts)
{
    if (!a->exists || !b->exists)
        return a->exists == b->exists;
    if ((a->st.st_mode & S_IFMT) != (b->st.st_mode & S_IFMT))
        return 0;
    if (owner_counts && (a->st.st_uid != b->st.st_uid || a->st.st_gid != b->st.st_gid))
        return 0;
    if (S_ISLNK(a->st.st_mode))
        return same_target(a, b);
    if ((a->st.st_mode & MODE_BITS) != (b->st.st_mode & MODE_BITS))
        return 0;
    if (S_ISREG(a->st.st_mode))
        return same_content(a, b);
    return S_ISDIR(a->st.st_mode);
}

int tree_parent_open(int tree_fd, const char *path, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    char parent[PATH_MAX] = ".";

    if (slash && (size_t)(slash - path) >= sizeof(parent))
        return -ENAMETOOLONG;
    if (slash) {
        memcpy(parent, path, (size_t)(slash - path));
        parent[slash - path] = '\0';
    }
    *ret_name = slash ? slash + 1 : path;
    return open_no_links(tree_fd, parent, O_PATH | O_DIRECTORY, 0);
}
