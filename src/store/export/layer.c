// SPDX-License-Identifier: Apache-2.0
#include "store/export/layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/walk.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "store/import/digest.h"
#include "store/import/import.h"

#define WHITEOUT ".wh."
#define WHITEOUT_OPAQUE ".wh..wh..opq"
#define XATTR_OPAQUE "trusted.overlay.opaque"

enum {
    BUFFER_BYTES = 64 * 1024,
    XATTR_NAMES_MAX = 64 * 1024, /* the kernel's own limits */
    XATTR_VALUE_MAX = 64 * 1024,
    GZIP_LEVEL = 4,
    GZIP_WINDOW = 15 + 16, /* with the header of gzip */
};

struct layer_writer {
    struct archive *archive;
    struct archive_entry *entry;
    struct archive_entry_linkresolver *links;
    struct digest *plain, *packed;
    z_stream gzip;
    bool has_gzip;
    int fd;
    uint64_t size;
    char *out, *in;      /* BUFFER_BYTES each */
    char path[PATH_MAX]; /* of the present directory, without slashes at its ends; "": the top */
    bool is_upper;
    struct err *err;
};

static void layer_writer_done(struct layer_writer *writer)
{
    /* Nothing is added to an entry that is not whole. An archive that has failed is not closed when
     * it is freed, and its buffer would be lost. */
    if (writer->archive) {
        (void)archive_write_fail(writer->archive);
        (void)archive_write_close(writer->archive);
    }
    (void)archive_write_free(writer->archive);
    archive_entry_free(writer->entry);
    archive_entry_linkresolver_free(writer->links);
    digest_free(writer->plain);
    digest_free(writer->packed);
    if (writer->has_gzip)
        (void)deflateEnd(&writer->gzip);
    free(writer->out);
    free(writer->in);
}

/* --- bytes ------------------------------------------------------------------------------------ */

/* Compresses bytes into the file. Returns 0 or -errno. */
static int bytes_pack(struct layer_writer *writer, const void *data, size_t len, int flush)
{
    z_stream *gzip = &writer->gzip;
    int status = Z_OK, r = 0;

    gzip->next_in = (Bytef *)(uintptr_t)data;
    gzip->avail_in = (uInt)len;
    do {
        size_t packed;

        gzip->next_out = (Bytef *)writer->out;
        gzip->avail_out = BUFFER_BYTES;
        status = deflate(gzip, flush);
        packed = BUFFER_BYTES - gzip->avail_out;
        digest_add(writer->packed, writer->out, packed);
        writer->size += packed;
        r = write_all(writer->fd, writer->out, packed);
    } while (r == 0 && status == Z_OK && (gzip->avail_in > 0 || gzip->avail_out == 0 || flush));
    return r < 0 ? r : status == Z_STREAM_ERROR ? -EIO : 0;
}

static la_ssize_t bytes_take(struct archive *archive, void *context, const void *data, size_t len)
{
    struct layer_writer *writer = context;
    int r;

    digest_add(writer->plain, data, len);
    r = bytes_pack(writer, data, len, Z_NO_FLUSH);
    if (r == 0)
        return (la_ssize_t)len;
    archive_set_error(archive, -r, "%s", strerror(-r));
    return -1;
}

static int writer_open(struct layer_writer *writer)
{
    writer->archive = archive_write_new();
    writer->entry = archive_entry_new();
    writer->links = archive_entry_linkresolver_new();
    writer->plain = digest_new();
    writer->packed = digest_new();
    writer->out = xcalloc(1, BUFFER_BYTES);
    writer->in = xcalloc(1, BUFFER_BYTES);
    if (!writer->archive || !writer->entry || !writer->links || !writer->plain || !writer->packed)
        return -ENOMEM;
    if (deflateInit2(&writer->gzip, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return -ENOMEM;
    writer->has_gzip = true;
    archive_entry_linkresolver_set_strategy(writer->links, ARCHIVE_FORMAT_TAR_PAX_RESTRICTED);
    if (archive_write_set_format_pax_restricted(writer->archive) != ARCHIVE_OK ||
        archive_write_set_bytes_per_block(writer->archive, BUFFER_BYTES) != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(writer->archive, 1) != ARCHIVE_OK ||
        archive_write_open(writer->archive, writer, NULL, bytes_take, NULL) != ARCHIVE_OK)
        return -EIO;
    return 0;
}

/* --- entries ---------------------------------------------------------------------------------- */

static int archive_fail(struct layer_writer *writer)
{
    int errnum = archive_errno(writer->archive);

    return import_error(writer->err, errnum > 0 ? -errnum : -EIO, "write the layer at",
                        archive_entry_pathname(writer->entry));
}

/* Begins an entry of the present directory; name NULL is the directory itself. */
static int entry_begin(struct layer_writer *writer, const char *prefix, const char *name)
{
    char path[PATH_MAX];
    int len = snprintf(path, sizeof(path), "%s%s%s%s", writer->path,
                       writer->path[0] && name ? "/" : "", prefix, name ? name : "");

    if (len >= (int)sizeof(path))
        return err_set(writer->err, ERR_INVALID, "'%.80s...' is too deep for an image",
                       writer->path);
    (void)archive_entry_clear(writer->entry);
    archive_entry_set_pathname(writer->entry, path);
    archive_entry_set_nlink(writer->entry, 1);
    return 0;
}

/* Times have whole seconds: a fraction would add a header of its own to each file. */
static void entry_set_stat(struct layer_writer *writer, const struct stat *st)
{
    archive_entry_set_mode(writer->entry, st->st_mode);
    archive_entry_set_uid(writer->entry, st->st_uid);
    archive_entry_set_gid(writer->entry, st->st_gid);
    archive_entry_set_mtime(writer->entry, st->st_mtim.tv_sec, 0);
    archive_entry_set_size(writer->entry, S_ISREG(st->st_mode) ? st->st_size : 0);
}

/* Adds the attributes that imports keep. */
static void entry_add_xattrs(struct layer_writer *writer, int fd)
{
    cleanup_free char *names = xcalloc(1, XATTR_NAMES_MAX), *value = xcalloc(1, XATTR_VALUE_MAX);
    ssize_t len = flistxattr(fd, names, XATTR_NAMES_MAX);

    for (const char *name = names; len > 0 && name < names + len; name += strlen(name) + 1) {
        ssize_t size = import_keeps_xattr(name) ? fgetxattr(fd, name, value, XATTR_VALUE_MAX) : -1;

        if (size >= 0)
            archive_entry_xattr_add_entry(writer->entry, name, value, (size_t)size);
    }
}

static int entry_write(struct layer_writer *writer)
{
    return archive_write_header(writer->archive, writer->entry) < ARCHIVE_WARN
               ? archive_fail(writer)
               : 0;
}

/* An empty file whose name means something to the reader of a layer. */
static int mark_write(struct layer_writer *writer, const char *prefix, const char *name)
{
    int r = entry_begin(writer, prefix, name);

    if (r < 0)
        return r;
    archive_entry_set_mode(writer->entry, S_IFREG);
    return entry_write(writer);
}

/* A file that shrinks is filled up with zeros by libarchive; nothing writes to a template. */
static int data_write(struct layer_writer *writer, int fd)
{
    la_int64_t left = archive_entry_size(writer->entry);

    while (left > 0) {
        ssize_t n = read(fd, writer->in, left < BUFFER_BYTES ? (size_t)left : BUFFER_BYTES);

        if (n < 0)
            return import_error(writer->err, -errno, "read", archive_entry_pathname(writer->entry));
        if (n == 0)
            break;
        if (archive_write_data(writer->archive, writer->in, (size_t)n) < 0)
            return archive_fail(writer);
        left -= n;
    }
    return 0;
}

static int file_write(struct layer_writer *writer, int dir_fd, const char *name,
                      const struct stat *st)
{
    cleanup_close int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct archive_entry *spare = NULL;
    int r;

    if (fd < 0)
        return import_error(writer->err, -errno, "open", name);
    archive_entry_set_dev(writer->entry, st->st_dev);
    archive_entry_set_ino64(writer->entry, (la_int64_t)st->st_ino);
    archive_entry_set_nlink(writer->entry, (unsigned)st->st_nlink);
    archive_entry_linkify(writer->links, &writer->entry, &spare);
    if (!archive_entry_hardlink(writer->entry))
        entry_add_xattrs(writer, fd);
    r = entry_write(writer);
    return r < 0 ? r : data_write(writer, fd);
}

static int link_write(struct layer_writer *writer, int dir_fd, const char *name)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(dir_fd, name, target, sizeof(target) - 1);

    if (len < 0)
        return import_error(writer->err, -errno, "read link", name);
    target[len] = '\0';
    archive_entry_set_symlink(writer->entry, target);
    return entry_write(writer);
}

/* --- the walk --------------------------------------------------------------------------------- */

static bool is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

static int name_check(struct layer_writer *writer, const char *name)
{
    if (strncmp(name, WHITEOUT, strlen(WHITEOUT)) != 0)
        return 0;
    return err_set(writer->err, ERR_INVALID,
                   "'%s' in '/%.80s' has a name that removes a file in an "
                   "image: rename it",
                   import_label(name).text, writer->path);
}

static int on_entry(void *context, int dir_fd, const char *name, const struct stat *st)
{
    struct layer_writer *writer = context;
    int r = name_check(writer, name);

    if (r < 0)
        return r;
    if (is_whiteout(st))
        return writer->is_upper ? mark_write(writer, WHITEOUT, name) : 0;
    r = entry_begin(writer, "", name);
    if (r < 0)
        return r;
    entry_set_stat(writer, st);
    switch (st->st_mode & S_IFMT) {
    case S_IFREG:
        return file_write(writer, dir_fd, name, st);
    case S_IFLNK:
        return link_write(writer, dir_fd, name);
    case S_IFIFO:
        return entry_write(writer);
    default:
        return 0;
    }
}

static bool is_opaque(const struct layer_writer *writer, int fd)
{
    char value[2];

    return writer->is_upper && fgetxattr(fd, XATTR_OPAQUE, value, sizeof(value)) == 1 &&
           value[0] == 'y';
}

static int path_push(struct layer_writer *writer, const char *name)
{
    size_t len = strlen(writer->path);
    int added =
        snprintf(writer->path + len, sizeof(writer->path) - len, "%s%s", len > 0 ? "/" : "", name);

    if (added < (int)(sizeof(writer->path) - len))
        return 0;
    writer->path[len] = '\0';
    return err_set(writer->err, ERR_INVALID, "'%.80s...' is too deep for an image", writer->path);
}

static int on_enter(void *context, int fd, const char *name, const struct stat *st)
{
    struct layer_writer *writer = context;
    int r = name ? name_check(writer, name) : 0;

    if (r == 0 && name)
        r = path_push(writer, name);
    if (r == 0 && writer->path[0]) {
        r = entry_begin(writer, "", NULL);
        entry_set_stat(writer, st);
        entry_add_xattrs(writer, fd);
        r = r < 0 ? r : entry_write(writer);
    }
    return r == 0 && is_opaque(writer, fd) ? mark_write(writer, "", WHITEOUT_OPAQUE) : r;
}

static int on_leave(void *context, int fd, const struct stat *st)
{
    struct layer_writer *writer = context;
    char *slash = strrchr(writer->path, '/');

    (void)fd;
    (void)st;
    *(slash ? slash : writer->path) = '\0';
    return 0;
}

static int tree_write(struct layer_writer *writer, const struct layer_tree *tree)
{
    static const struct walk_ops ops = { on_entry, on_enter, on_leave };
    cleanup_close int fd = openat(tree->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r;

    if (fd < 0)
        return err_sys(writer->err, -errno, "open '%s' of the template", tree->target);
    writer->is_upper = tree->is_upper;
    (void)snprintf(writer->path, sizeof(writer->path), "%s", tree->target + 1);
    writer->err->kind = ERR_NONE;
    r = tree_walk(fd, &ops, writer);
    if (r < 0 && writer->err->kind == ERR_NONE)
        return err_sys(writer->err, r, "read '%s' of the template", tree->target);
    return r;
}

static int digest_text(struct digest *digest, char ret[static IMAGE_DIGEST_LEN + 1])
{
    (void)snprintf(ret, IMAGE_DIGEST_LEN + 1, "sha256:");
    return digest_hex(digest, ret + strlen("sha256:"));
}

int image_layer_write(const struct layer_tree *trees, size_t count, int fd, struct layer *ret,
                      struct err *err)
{
    cleanup_with(layer_writer_done) struct layer_writer writer = { .fd = fd, .err = err };
    int r = writer_open(&writer);

    if (r < 0)
        return err_sys(err, r, "begin a layer");
    for (size_t i = 0; r == 0 && i < count; i++)
        r = tree_write(&writer, &trees[i]);
    if (r < 0)
        return r;
    if (archive_write_close(writer.archive) < ARCHIVE_WARN)
        return archive_fail(&writer);
    r = bytes_pack(&writer, "", 0, Z_FINISH);
    if (r < 0)
        return import_error(err, r, "write", "the layer");
    ret->size = writer.size;
    if (digest_text(writer.plain, ret->diff_id) < 0 || digest_text(writer.packed, ret->digest) < 0)
        return err_sys(err, -EIO, "compute a digest");
    return 0;
}
