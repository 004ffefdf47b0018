// SPDX-License-Identifier: Apache-2.0
#include "api/plain/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/file_entry.h"
#include "base/xalloc.h"
#include "host/worker/file.h"

struct tar_writer {
    struct archive *archive;
    struct archive_entry *entry;
    struct buf *out;
    char *top;
    uint64_t left; /* bytes of the file that its header has announced */
};

static la_ssize_t on_write(struct archive *archive, void *context, const void *data, size_t len)
{
    struct tar_writer *tar = context;

    if (buf_add(tar->out, data, len) == 0)
        return (la_ssize_t)len;
    archive_set_error(archive, ENOBUFS, "the archive's buffer is full");
    return -1;
}

struct tar_writer *tar_writer_new(struct buf *out, const char *top)
{
    struct tar_writer *tar = xcalloc(1, sizeof(*tar));

    tar->out = out;
    tar->top = xstrdup(top);
    tar->archive = archive_write_new();
    tar->entry = archive_entry_new();
    if (tar->archive && tar->entry &&
        archive_write_set_format_pax_restricted(tar->archive) == ARCHIVE_OK &&
        archive_write_set_bytes_per_block(tar->archive, 0) == ARCHIVE_OK &&
        archive_write_open(tar->archive, tar, NULL, on_write, NULL) == ARCHIVE_OK)
        return tar;
    tar_writer_free(tar);
    return NULL;
}

/* Closing an archive writes its end: into nothing. Freeing does not close one that has failed. */
void tar_writer_free(struct tar_writer *tar)
{
    struct buf nothing = { .max = 0 };

    if (!tar)
        return;
    tar->out = &nothing;
    archive_entry_free(tar->entry);
    if (tar->archive)
        (void)archive_write_close(tar->archive);
    (void)archive_write_free(tar->archive);
    free(tar->top);
    free(tar);
}

static int tar_error(const struct tar_writer *tar, struct err *err)
{
    return err_set(err, ERR_INTERNAL, "write an archive: %.120s",
                   archive_error_string(tar->archive));
}

/* A worker's paths begin with a word of its own for the top. */
static char *path_make(const struct tar_writer *tar, const char *path)
{
    const char *slash = strchr(path, '/');

    return xasprintf("%s%s", tar->top, slash ? slash : "");
}

static int entry_add(struct tar_writer *tar, const struct file_entry *entry, struct err *err)
{
    static const mode_t types[ENTRY_TYPES] = {
        [ENTRY_FILE] = S_IFREG,
        [ENTRY_DIRECTORY] = S_IFDIR,
        [ENTRY_LINK] = S_IFLNK,
        [ENTRY_PIPE] = S_IFIFO,
    };
    cleanup_free char *path = path_make(tar, entry->path);
    cleanup_free char *same_as = path_make(tar, entry->same_as);
    bool has_data = entry->type == ENTRY_FILE && !entry->same_as[0];

    tar->left = 0;
    if (types[entry->type] == 0)
        return 0;
    (void)archive_entry_clear(tar->entry);
    archive_entry_set_pathname(tar->entry, path);
    archive_entry_set_filetype(tar->entry, types[entry->type]);
    archive_entry_set_perm(tar->entry, entry->mode);
    archive_entry_set_uid(tar->entry, entry->uid);
    archive_entry_set_gid(tar->entry, entry->gid);
    archive_entry_set_mtime(tar->entry, entry->mtime_s, entry->mtime_ns);
    archive_entry_set_size(tar->entry, has_data ? (la_int64_t)entry->size : 0);
    if (entry->same_as[0])
        archive_entry_set_hardlink(tar->entry, same_as);
    else if (entry->type == ENTRY_LINK)
        archive_entry_set_symlink(tar->entry, entry->target);
    tar->left = has_data ? entry->size : 0;
    return archive_write_header(tar->archive, tar->entry) < ARCHIVE_WARN ? tar_error(tar, err) : 0;
}

/* A file that shrinks is filled up with zeros by libarchive; one that grows is cut. */
static int data_add(struct tar_writer *tar, const char *data, size_t len, struct err *err)
{
    if (len > tar->left)
        len = (size_t)tar->left;
    tar->left -= len;
    return len > 0 && archive_write_data(tar->archive, data, len) < 0 ? tar_error(tar, err) : 0;
}

int tar_writer_add(struct tar_writer *tar, const struct file_answer *answer, struct err *err)
{
    if (answer->type == FILE_ENTRY)
        return entry_add(tar, &answer->entry, err);
    return answer->type == FILE_DATA ? data_add(tar, answer->data, answer->len, err) : 0;
}

int tar_writer_finish(struct tar_writer *tar, struct err *err)
{
    return archive_write_close(tar->archive) < ARCHIVE_WARN ? tar_error(tar, err) : 0;
}
