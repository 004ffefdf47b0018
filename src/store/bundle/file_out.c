// SPDX-License-Identifier: Apache-2.0
#include "store/bundle/file_out.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "kernel/path.h"
#include "store/bundle/tar_out.h"
#include "store/import/import.h"

enum {
    BLOCK_BYTES = 256 << 10,
    XATTR_NAMES_MAX = 64 << 10, /* limits of Linux */
    XATTR_VALUE_MAX = 64 << 10,
    SEGMENTS_MAX = 4096, /* what follows the last one is written with its holes */
    SPARSE_MIN = 1 << 20 /* holes below this size are written */
};

struct written_link {
    dev_t dev;
    ino_t ino;
    char path[];
};

void file_out_done(struct file_out *files)
{
    tdestroy(files->links, free);
    free(files->block);
    *files = (struct file_out){ .links = NULL };
}

static int link_compare(const void *a, const void *b)
{
    const struct written_link *left = a, *right = b;

    if (left->ino != right->ino)
        return left->ino < right->ino ? -1 : 1;
    return left->dev == right->dev ? 0 : left->dev < right->dev ? -1 : 1;
}

/* Returns the path by which the file was written, or records this one and returns NULL. */
static const char *link_find(struct file_out *files, const struct stat *st, const char *path)
{
    size_t len = strlen(path) + 1;
    cleanup_free struct written_link *link = xcalloc(1, sizeof(*link) + len);
    struct written_link **found;

    link->dev = st->st_dev;
    link->ino = st->st_ino;
    memcpy(link->path, path, len);
    found = tsearch(link, &files->links, link_compare);
    if (!found)
        abort();
    if (*found != link)
        return (*found)->path;
    (void)TAKE_PTR(link);
    return NULL;
}

/* --- attributes ------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Adds attributes as records, sorted by name. */
static int xattrs_add(struct tar_out *out, int fd, const char *names, size_t len)
{
    cleanup_free const char **list = xcalloc(len + 1, sizeof(*list));
    cleanup_free char *value = NULL;
    size_t count = 0;
    int r = 0;

    for (const char *name = names; name < names + len; name += strlen(name) + 1) {
        if (import_keeps_xattr(name))
            list[count++] = name;
    }
    if (count > 0) {
        value = xcalloc(1, XATTR_VALUE_MAX);
        qsort(list, count, sizeof(*list), by_name);
    }
    for (size_t i = 0; r == 0 && i < count; i++) {
        ssize_t size = fgetxattr(fd, list[i], value, XATTR_VALUE_MAX);

        r = size < 0 ? -errno : tar_out_xattr(out, list[i], value, (size_t)size);
    }
    return r;
}

int file_out_xattrs(struct tar_out *out, int fd)
{
    cleanup_free char *names = NULL;
    ssize_t len = flistxattr(fd, NULL, 0);

    if (len <= 0)
        return len == 0 || errno == EOPNOTSUPP ? 0 : -errno;
    names = xcalloc(1, XATTR_NAMES_MAX);
    len = flistxattr(fd, names, XATTR_NAMES_MAX);
    return len < 0 ? -errno : xattrs_add(out, fd, names, (size_t)len);
}

/* Reads the attributes as records. */
static int xattrs_read(int dir_fd, const char *name, struct tar_out *into)
{
    cleanup_close int fd = open_no_links(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);

    return fd < 0 ? fd : file_out_xattrs(into, fd);
}

bool file_out_same_xattrs(int old_dir_fd, int new_dir_fd, const char *name)
{
    cleanup_with(tar_out_done) struct tar_out old = TAR_OUT_INIT(NULL, NULL);
    cleanup_with(tar_out_done) struct tar_out new = TAR_OUT_INIT(NULL, NULL);

    return xattrs_read(old_dir_fd, name, &old) == 0 && xattrs_read(new_dir_fd, name, &new) == 0 &&
           old.records.len == new.records.len &&
           (old.records.len == 0 ||
            memcmp(old.records.data, new.records.data, old.records.len) == 0);
}

/* --- contents --------------------------------------------------------------------------------- */

/* A part of a file that is not a hole. */
struct segment {
    uint64_t at, len;
};

/* Finds the segments of a file. Returns their number or -errno. */
static ssize_t segments_find(int fd, uint64_t size, struct segment *segments)
{
    size_t count = 0;

    for (uint64_t at = 0; at < size && count < SEGMENTS_MAX;) {
        off_t data = lseek(fd, (off_t)at, SEEK_DATA), hole;

        if (data < 0 && errno == ENXIO)
            break;
        hole = data < 0 ? data : lseek(fd, data, SEEK_HOLE);
        if (hole < 0)
            return -errno;
        if (count == SEGMENTS_MAX - 1 || (uint64_t)hole > size)
            hole = (off_t)size;
        segments[count++] = (struct segment){ (uint64_t)data, (uint64_t)(hole - data) };
        at = (uint64_t)hole;
    }
    return (ssize_t)count;
}

static int data_write(struct file_out *files, struct tar_out *out, int fd, struct segment segment)
{
    int r = 0;

    if (!files->block)
        files->block = xcalloc(1, BLOCK_BYTES);
    while (r == 0 && segment.len > 0) {
        size_t wanted = segment.len < BLOCK_BYTES ? (size_t)segment.len : BLOCK_BYTES;
        ssize_t n = pread(fd, files->block, wanted, (off_t)segment.at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ESTALE;
        r = tar_out_data(out, files->block, (size_t)n);
        segment.at += (size_t)n;
        segment.len -= (size_t)n;
    }
    return r;
}

/* Writes the list of segments, which precedes the data of a sparse file, in whole blocks. */
static int map_make(const struct segment *segments, size_t count, struct buf *map)
{
    static const char zeros[TAR_BLOCK];
    int r = buf_printf(map, "%zu\n", count);

    for (size_t i = 0; r == 0 && i < count; i++)
        r = buf_printf(map, "%" PRIu64 "\n%" PRIu64 "\n", segments[i].at, segments[i].len);
    if (r == 0 && map->len % TAR_BLOCK)
        r = buf_add(map, zeros, TAR_BLOCK - map->len % TAR_BLOCK);
    return r;
}

static int sparse_write(struct file_out *files, struct tar_out *out, struct tar_node *node, int fd)
{
    cleanup_with(buf_done) struct buf map = BUF_INIT(1 << 20);
    cleanup_free struct segment *segments = xcalloc(SEGMENTS_MAX, sizeof(*segments));
    ssize_t count = segments_find(fd, node->sparse_size, segments);
    int r = count < 0 ? (int)count : map_make(segments, (size_t)count, &map);

    node->size = map.len;
    for (ssize_t i = 0; i < count; i++)
        node->size += segments[i].len;
    if (r == 0)
        r = tar_out_header(out, node);
    if (r == 0)
        r = tar_out_data(out, map.data, map.len);
    for (ssize_t i = 0; r == 0 && i < count; i++)
        r = data_write(files, out, fd, segments[i]);
    return r == 0 ? tar_out_pad(out, node->size) : r;
}

static bool has_holes(const struct stat *st)
{
    return st->st_size - (off_t)st->st_blocks * 512 >= SPARSE_MIN;
}

int file_out_write(struct file_out *files, struct tar_out *out, struct tar_node *node, int fd,
                   const struct stat *st)
{
    const char *first = st->st_nlink > 1 ? link_find(files, st, node->path) : NULL;
    int r;

    if (first) {
        node->type = '1';
        node->link = first;
        return tar_out_header(out, node);
    }
    node->type = '0';
    r = file_out_xattrs(out, fd);
    if (r == 0 && has_holes(st)) {
        node->sparse_size = (uint64_t)st->st_size;
        return sparse_write(files, out, node, fd);
    }
    node->size = (uint64_t)st->st_size;
    if (r == 0)
        r = tar_out_header(out, node);
    if (r == 0)
        r = data_write(files, out, fd, (struct segment){ 0, node->size });
    return r == 0 ? tar_out_pad(out, node->size) : r;
}
