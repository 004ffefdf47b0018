// SPDX-License-Identifier: Apache-2.0
/* A name that `tree` does not have becomes a whiteout, a character device 0:0. Directories are
 * merged: none is opaque. Nobody else uses the upper directory yet. */
#include "store/codebase/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/file_copy.h"
#include "kernel/path.h"
#include "store/codebase/differences.h"
#include "store/codebase/entry.h"

enum { MODE_BITS = 0777 };

struct layer {
    int upper_fd, lower_fd, tree_fd;
};

static int attributes_set(int parent_fd, const char *name, const struct stat *st)
{
    const struct timespec times[] = { st->st_atim, st->st_mtim };

    if (fchownat(parent_fd, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISLNK(st->st_mode) && fchmodat(parent_fd, name, st->st_mode & MODE_BITS, 0) < 0)
        return -errno;
    return utimensat(parent_fd, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int dir_fill(int parent_fd, const char *name, const struct stat *st)
{
    if (mkdirat(parent_fd, name, 0700) < 0)
        return errno == EEXIST ? 0 : -errno;
    return attributes_set(parent_fd, name, st);
}

static int file_fill(const struct tree_entry *entry, int parent_fd, const char *name)
{
    cleanup_close int from_fd = tree_entry_open(entry);
    cleanup_close int fd = -EBADF;
    int r;

    if (from_fd < 0)
        return from_fd;
    fd = openat(parent_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    r = fd < 0 ? -errno : file_copy_content(from_fd, fd, entry->st.st_size);
    return r == 0 ? attributes_set(parent_fd, name, &entry->st) : r;
}

static int link_fill(const struct tree_entry *entry, int parent_fd, const char *name)
{
    char target[PATH_MAX];
    int r = tree_entry_read_link(entry, target, sizeof(target));

    if (r == 0 && symlinkat(target, parent_fd, name) < 0)
        r = -errno;
    return r == 0 ? attributes_set(parent_fd, name, &entry->st) : r;
}

static int whiteout_make(const struct layer *layer, const char *path)
{
    struct tree_entry lower;
    const char *name;
    cleanup_close int parent_fd = tree_parent_open(layer->upper_fd, path, &name);
    int r = parent_fd < 0 ? parent_fd : tree_entry_find(layer->lower_fd, path, &lower);

    if (r == 0 && lower.exists && mknodat(parent_fd, name, S_IFCHR, makedev(0, 0)) < 0 &&
        errno != EEXIST)
        r = -errno;
    return r;
}

static int entry_fill(const struct layer *layer, const struct tree_entry *entry)
{
    const char *name;
    cleanup_close int parent_fd = -EBADF;

    if (!entry->exists)
        return whiteout_make(layer, entry->path);
    parent_fd = tree_parent_open(layer->upper_fd, entry->path, &name);
    if (parent_fd < 0)
        return parent_fd;
    if (S_ISDIR(entry->st.st_mode))
        return dir_fill(parent_fd, name, &entry->st);
    return S_ISLNK(entry->st.st_mode) ? link_fill(entry, parent_fd, name)
                                      : file_fill(entry, parent_fd, name);
}

/* Fills the directories above a path as well. What is below a directory that `tree` does not have
 * is gone with it. */
static int path_fill(const struct layer *layer, const char *path)
{
    char part[PATH_MAX];
    struct tree_entry entry;
    int r = 0;

    if (strlen(path) >= sizeof(part))
        return -ENAMETOOLONG;
    for (size_t end = strcspn(path, "/"); r == 0; end += 1 + strcspn(path + end + 1, "/")) {
        memcpy(part, path, end);
        part[end] = '\0';
        r = tree_entry_find(layer->tree_fd, part, &entry);
        if (r == 0 && (path[end] == '\0' || !entry.exists || S_ISDIR(entry.st.st_mode)))
            r = entry_fill(layer, &entry);
        if (path[end] == '\0' || !entry.exists || !S_ISDIR(entry.st.st_mode))
            break;
    }
    return r;
}

int layer_fill(int upper_fd, int lower_fd, int tree_fd, struct err *err)
{
    cleanup_with(differences_done) struct differences list = DIFFERENCES_INIT;
    const struct layer layer = { upper_fd, lower_fd, tree_fd };
    int r = differences_list(&list, lower_fd, tree_fd, NULL, err);

    for (size_t i = 0; r == 0 && i < list.count; i++) {
        r = *list.paths[i] ? path_fill(&layer, list.paths[i]) : 0;
        if (r < 0)
            return err_sys(err, r, "write '%.150s'", list.paths[i]);
    }
    return r;
}
