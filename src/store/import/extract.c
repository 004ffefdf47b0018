// SPDX-License-Identifier: Apache-2.0
#include "store/import/extract.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "store/import/import.h"
#include "store/import/root.h"

#define WHITEOUT ".wh."
#define WHITEOUT_OPAQUE ".wh..wh..opq"
#define WHITEOUT_META ".wh..wh." /* metadata of aufs */

enum { BLOCK_BYTES = 128 << 10 };

struct extract {
    struct archive *archive;
    struct import_root *root;
    const struct extract_options *options;
    uint64_t source_before; /* source_bytes of the budget when this archive was opened */
    char path[PATH_MAX];    /* of the current entry */
};

DEFINE_CLEANUP(archive_read_free, struct archive *);

static int archive_error(struct extract *extract, const char *where, struct err *err)
{
    const char *why = archive_error_string(extract->archive);

    return err_set(err, ERR_INVALID, "%s '%s': %s", where, import_label(extract->path).text,
                   why ? why : "the archive is damaged");
}

static int archive_open(int fd, struct archive **ret, struct err *err)
{
    cleanup_with(archive_read_free_slot) struct archive *archive = archive_read_new();

    if (!archive)
        return err_sys(err, -ENOMEM, "read the archive");
    (void)archive_read_support_format_tar(archive);
    (void)archive_read_support_filter_gzip(archive);
    (void)archive_read_support_filter_zstd(archive);
    (void)archive_read_support_filter_xz(archive);
    (void)archive_read_support_filter_bzip2(archive);
    if (archive_read_open_fd(archive, fd, BLOCK_BYTES) != ARCHIVE_OK)
        return err_set(err, ERR_INVALID, "not a tar archive (plain, gzip, zstd, xz or bzip2)");
    *ret = TAKE_PTR(archive);
    return 0;
}

/* Notes how much of the archive was read, before it was decompressed. */
static void source_note(struct extract *extract)
{
    la_int64_t bytes = archive_filter_bytes(extract->archive, -1);

    budget_read(extract->root->budget, extract->source_before + (uint64_t)(bytes > 0 ? bytes : 0));
}

/* Writes the content of the entry, preserving holes, up to size bytes. */
static int content_write(struct extract *extract, int fd, uint64_t size, struct err *err)
{
    const void *data;
    size_t len;
    la_int64_t offset;
    int r;

    while ((r = archive_read_data_block(extract->archive, &data, &len, &offset)) == ARCHIVE_OK) {
        if (offset < 0 || (uint64_t)offset > size || len > size - (uint64_t)offset)
            return err_set(err, ERR_INVALID, "entry '%s' is longer than its header says",
                           import_label(extract->path).text);
        r = pwrite_all(fd, data, len, offset);
        if (r < 0)
            return import_error(err, r, "write", extract->path);
    }
    if (r != ARCHIVE_EOF)
        return archive_error(extract, "read", err);
    if (ftruncate(fd, (off_t)size) < 0)
        return import_error(err, -errno, "write", extract->path);
    return 0;
}

static int xattrs_write(struct extract *extract, struct archive_entry *entry, int fd,
                        struct err *err)
{
    const char *name;
    const void *value;
    size_t len;
    int r;

    if (extract->root->is_plain)
        return 0;
    (void)archive_entry_xattr_reset(entry);
    while (archive_entry_xattr_next(entry, &name, &value, &len) == ARCHIVE_OK) {
        if (!name || !import_keeps_xattr(name))
            continue;
        r = import_root_xattr(extract->root, fd, name, value, len, err);
        if (r < 0)
            return err_wrap(err, "entry '%s'", import_label(extract->path).text);
    }
    return 0;
}

static struct import_node archive_node(const struct extract *extract, struct archive_entry *entry)
{
    long nsec = archive_entry_mtime_nsec(entry);

    return (struct import_node){
        .path = extract->path,
        .mode = archive_entry_mode(entry),
        .uid = archive_entry_uid(entry),
        .gid = archive_entry_gid(entry),
        .mtime = { .tv_sec = archive_entry_mtime(entry),
                   .tv_nsec = nsec >= 0 && nsec < 1000000000 ? nsec : 0 },
    };
}

static int file_or_dir_extract(struct extract *extract, struct archive_entry *entry,
                               const struct import_node *node, struct err *err)
{
    cleanup_close int fd = -EBADF;
    int r = import_root_make(extract->root, node, &fd, err);

    if (r < 0)
        return r;
    if (S_ISREG(node->mode)) {
        r = content_write(extract, fd, (uint64_t)archive_entry_size(entry), err);
        if (r < 0)
            return r;
    }
    r = import_root_finish(extract->root, node, fd, err);
    return r < 0 ? r : xattrs_write(extract, entry, fd, err);
}

static int hardlink_extract(struct extract *extract, const char *target, struct err *err)
{
    char path[PATH_MAX];
    int r = import_path(target, path, err);

    if (r < 0)
        return err_wrap(err, "hard link '%s'", import_label(extract->path).text);
    return import_root_hardlink(extract->root, extract->path, path, err);
}

/* Holt provides its own /dev, so entries there are ignored. */
static bool is_below_dev(const char *path)
{
    return strncmp(path, "dev/", strlen("dev/")) == 0;
}

static int entry_extract(struct extract *extract, struct archive_entry *entry, struct err *err)
{
    struct import_node node = archive_node(extract, entry);
    const char *target = archive_entry_hardlink(entry);

    if (is_below_dev(extract->path))
        return 0;
    if (target)
        return hardlink_extract(extract, target, err);
    switch (node.mode & S_IFMT) {
    case S_IFREG:
    case S_IFDIR:
        return file_or_dir_extract(extract, entry, &node, err);
    case S_IFLNK:
        target = archive_entry_symlink(entry);
        return import_root_symlink(extract->root, &node, target ? target : "", err);
    case S_IFIFO:
        return import_root_fifo(extract->root, &node, err);
    case S_IFSOCK:
        return 0;
    default:
        return err_set(err, ERR_INVALID, "entry '%s' is a device outside of /dev",
                       import_label(extract->path).text);
    }
}

/* Handles the special names of a layer. Returns 1 if the entry was one of them. */
static int whiteout_extract(struct extract *extract, struct err *err)
{
    char *slash = strrchr(extract->path, '/'), *base = slash ? slash + 1 : extract->path;
    const char *name = base + strlen(WHITEOUT);
    int r = 0;

    if (strncmp(base, WHITEOUT, strlen(WHITEOUT)) != 0)
        return 0;
    if (strcmp(base, WHITEOUT_OPAQUE) == 0) {
        *(slash ? slash : base) = '\0';
        r = import_root_opaque(extract->root, extract->path, err);
    } else if (strncmp(base, WHITEOUT_META, strlen(WHITEOUT_META)) != 0) {
        if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            return err_set(err, ERR_INVALID, "entry '%s' is a whiteout of nothing",
                           import_label(extract->path).text);
        memmove(base, name, strlen(name) + 1);
        r = import_root_whiteout(extract->root, extract->path, err);
    }
    return r < 0 ? r : 1;
}

/* Charged before anything is written, and for skipped entries too: they are decompressed as well.
 */
static int entry_spend(struct extract *extract, struct archive_entry *entry, struct err *err)
{
    la_int64_t size = archive_entry_size(entry);
    int r;

    source_note(extract);
    if (size < 0)
        return err_set(err, ERR_INVALID, "entry '%s' has no size",
                       import_label(extract->path).text);
    r = budget_spend(extract->root->budget, 1, (uint64_t)size, err);
    return r < 0 ? err_wrap(err, "entry '%s'", import_label(extract->path).text) : 0;
}

/* Returns 0, or 1 if the entry is not accepted. */
static int entry_handle(struct extract *extract, struct archive_entry *entry, struct err *err)
{
    const char *name = archive_entry_pathname(entry);
    int r;

    if (!name)
        return err_set(err, ERR_INVALID, "the entry after '%s' has no readable name",
                       import_label(extract->path).text);
    r = import_path(name, extract->path, err);
    if (r < 0)
        return r;
    if (extract->options->accepts && !extract->options->accepts(extract->path))
        return 1;
    r = entry_spend(extract, entry, err);
    if (r < 0)
        return r;
    if (extract->options->is_layer) {
        r = whiteout_extract(extract, err);
        if (r != 0)
            return r < 0 ? r : 0;
    }
    return entry_extract(extract, entry, err);
}

static int entries_extract(struct extract *extract, struct err *err)
{
    struct archive_entry *entry;
    int r;

    for (;;) {
        r = archive_read_next_header(extract->archive, &entry);
        if (r == ARCHIVE_EOF)
            return 0;
        /* A warning means that a name is not in the daemon's character set; it is used as it is.
         */
        if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
            return archive_error(extract, "after entry", err);
        r = entry_handle(extract, entry, err);
        if (r != 0)
            return r;
    }
}

int extract_archive(int fd, struct import_root *root, const struct extract_options *options,
                    struct err *err)
{
    cleanup_with(archive_read_free_slot) struct archive *archive = NULL;
    struct extract extract = { .root = root, .options = options };
    struct stat st;
    int r = archive_open(fd, &archive, err);

    if (r < 0)
        return r;
    extract.archive = archive;
    extract.source_before = root->budget->source_bytes;
    r = entries_extract(&extract, err);
    if (r == 0 && fstat(fd, &st) == 0) /* what follows the last entry was not read */
        budget_read(root->budget, extract.source_before + (uint64_t)st.st_size);
    return r;
}
