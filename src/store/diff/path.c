// SPDX-License-Identifier: Apache-2.0
#include "kernel/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "store/diff/diff_internal.h"
#include "store/import/import.h"

bool diff_is_gone(int r)
{
    return r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -ESTALE;
}

/* Writes the names from `dir` up to the tree's root, or with is_whole up to "/", each after a
 * slash, so that the last one ends at `end`. */
static void names_write(const struct diff_dir *dir, bool is_whole, char *end)
{
    for (; dir && (is_whole || !dir->is_tree_root) && dir->parent; dir = dir->parent) {
        size_t len = strlen(dir->name);

        end -= len;
        memcpy(end, dir->name, len);
        *--end = '/';
    }
}

int diff_path(const struct diff_dir *dir, const char *name, struct buf *path)
{
    size_t len = dir ? dir->path_len : 0;
    int r;

    buf_clear(path);
    r = buf_reserve(path, len);
    if (r < 0)
        return r;
    names_write(dir, true, path->data + len);
    path->len = len;
    r = buf_add_str(path, name || len == 0 ? "/" : "");
    if (r == 0 && name)
        r = buf_add_str(path, name);
    return r;
}

/* Returns the end of the longest prefix of a path that fits into one call. */
static char *piece_end(char *path)
{
    size_t len = strlen(path);

    return len < PATH_MAX ? path + len : memrchr(path, '/', PATH_MAX - 1);
}

int diff_path_open(const struct diff_dir *dir, const char *name, unsigned layer, int flags)
{
    cleanup_with(buf_done) struct buf path = BUF_INIT(DIFF_PATH_MAX + NAME_MAX + 2);
    cleanup_close int dir_fd = -EBADF;
    int from_fd = dir->tree->fds[layer], fd;
    char *piece, *end;
    int r = buf_reserve(&path, dir->inner_len + NAME_MAX + 2);

    if (r < 0)
        return r;
    names_write(dir, false, path.data + dir->inner_len);
    path.len = dir->inner_len;
    r = name ? buf_printf(&path, "/%s", name) : buf_add(&path, "", 0);
    if (r < 0)
        return r;
    if (path.len == 0)
        return open_no_links(from_fd, ".", flags, 0);
    for (piece = path.data + 1; *(end = piece_end(piece)); piece = end + 1) {
        *end = '\0';
        fd = open_no_links(from_fd, piece, O_PATH | O_DIRECTORY, 0);
        if (fd < 0)
            return fd;
        (void)fd_close(dir_fd);
        from_fd = dir_fd = fd;
    }
    return open_no_links(from_fd, piece, flags, 0);
}

int diff_error(struct err *err, int r, const struct diff_dir *dir, const char *name)
{
    cleanup_with(buf_done) struct buf path = BUF_INIT(DIFF_PATH_MAX + NAME_MAX + 2);
    struct import_label label;

    label = import_label(diff_path(dir, name, &path) == 0 ? path.data : "?");
    if (r == -EOPNOTSUPP)
        return err_set(err, ERR_UNSUPPORTED,
                       "'%s' was written with overlayfs redirect_dir or metacopy enabled",
                       label.text);
    if (r == -ENOBUFS)
        return err_set(err, ERR_EXHAUSTED,
                       "directory '%s' is too large to compare (more than %d MiB of names)",
                       label.text, DIFF_NAMES_MAX >> 20);
    return err_sys(err, r, "compare '%s'", label.text);
}
