// SPDX-License-Identifier: Apache-2.0
/* Trees as tar archives on standard input and output. libarchive is loaded at need. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/file_entry.h"
#include "base/library.h"
#include "cli/core/report.h"
#include "cli/cp/cp.h"
#include "holt.h"

#define LIBRARY "libarchive.so.13"

enum { BLOCK_BYTES = 128 << 10 };

#define FUNCTIONS(FUNCTION)                                                                        \
    FUNCTION(archive_entry_clear)                                                                  \
    FUNCTION(archive_entry_filetype)                                                               \
    FUNCTION(archive_entry_free)                                                                   \
    FUNCTION(archive_entry_gid)                                                                    \
    FUNCTION(archive_entry_hardlink)                                                               \
    FUNCTION(archive_entry_mtime)                                                                  \
    FUNCTION(archive_entry_mtime_nsec)                                                             \
    FUNCTION(archive_entry_new)                                                                    \
    FUNCTION(archive_entry_pathname)                                                               \
    FUNCTION(archive_entry_perm)                                                                   \
    FUNCTION(archive_entry_set_filetype)                                                           \
    FUNCTION(archive_entry_set_gid)                                                                \
    FUNCTION(archive_entry_set_hardlink)                                                           \
    FUNCTION(archive_entry_set_mtime)                                                              \
    FUNCTION(archive_entry_set_pathname)                                                           \
    FUNCTION(archive_entry_set_perm)                                                               \
    FUNCTION(archive_entry_set_size)                                                               \
    FUNCTION(archive_entry_set_symlink)                                                            \
    FUNCTION(archive_entry_set_uid)                                                                \
    FUNCTION(archive_entry_size)                                                                   \
    FUNCTION(archive_entry_symlink)                                                                \
    FUNCTION(archive_entry_uid)                                                                    \
    FUNCTION(archive_errno)                                                                        \
    FUNCTION(archive_error_string)                                                                 \
    FUNCTION(archive_read_data_block)                                                              \
    FUNCTION(archive_read_free)                                                                    \
    FUNCTION(archive_read_new)                                                                     \
    FUNCTION(archive_read_next_header)                                                             \
    FUNCTION(archive_read_open_fd)                                                                 \
    FUNCTION(archive_read_support_filter_all)                                                      \
    FUNCTION(archive_read_support_format_tar)                                                      \
    FUNCTION(archive_write_close)                                                                  \
    FUNCTION(archive_write_data)                                                                   \
    FUNCTION(archive_write_free)                                                                   \
    FUNCTION(archive_write_header)                                                                 \
    FUNCTION(archive_write_new)                                                                    \
    FUNCTION(archive_write_open_fd)                                                                \
    FUNCTION(archive_write_set_format_pax)

#define ROW(name) LIBRARY_ROW(struct functions, name)

struct functions {
    FUNCTIONS(LIBRARY_MEMBER)
};

static const struct library_row function_rows[] = { FUNCTIONS(ROW) };

static struct functions call;

static int functions_load(void)
{
    const char *problem = library_load(LIBRARY, function_rows, ARRAY_SIZE(function_rows), &call);

    return problem ? report("a tar stream needs libarchive: %s", problem) : 0;
}

/* --- to standard output ----------------------------------------------------------------------- */

struct tar_out {
    struct cp *cp;
    struct archive *archive;
    struct archive_entry *entry;
    uint64_t left; /* bytes of the file that its header has announced and that are not written */
    bool is_cut;   /* the file grew while it was read */
};

static int out_error(struct tar_out *out)
{
    int errnum = call.archive_errno(out->archive);

    return errnum > 0 ? -errnum : -EIO;
}

static int out_entry(void *context, const struct file_entry *entry)
{
    static const mode_t types[ENTRY_TYPES] = {
        [ENTRY_FILE] = S_IFREG, [ENTRY_DIRECTORY] = S_IFDIR, [ENTRY_LINK] = S_IFLNK
    };
    struct tar_out *out = context;
    bool has_data = entry->type == ENTRY_FILE && !entry->same_as[0];

    (void)call.archive_entry_clear(out->entry);
    call.archive_entry_set_pathname(out->entry, entry->path);
    call.archive_entry_set_filetype(out->entry, types[entry->type]);
    call.archive_entry_set_perm(out->entry, entry->mode & (out->cp->keeps_owner ? 07777 : 01777));
    call.archive_entry_set_uid(out->entry, entry->uid);
    call.archive_entry_set_gid(out->entry, entry->gid);
    call.archive_entry_set_mtime(out->entry, entry->mtime_s, entry->mtime_ns);
    call.archive_entry_set_size(out->entry, has_data ? (la_int64_t)entry->size : 0);
    if (entry->same_as[0])
        call.archive_entry_set_hardlink(out->entry, entry->same_as);
    else if (entry->type == ENTRY_LINK)
        call.archive_entry_set_symlink(out->entry, entry->target);
    out->left = has_data ? entry->size : 0;
    out->is_cut = false;
    return call.archive_write_header(out->archive, out->entry) < ARCHIVE_WARN ? out_error(out) : 0;
}

/* A file that shrinks is filled up with zeros by libarchive; one that grows is cut. */
static int out_data(void *context, const void *data, size_t len)
{
    struct tar_out *out = context;

    if (len > out->left && !out->is_cut) {
        out->is_cut = true;
        out->cp->troubles++;
        progress_end(&out->cp->progress);
        (void)report("'%s' grew while it was read: its end is left out",
                     call.archive_entry_pathname(out->entry));
    }
    if (len > out->left)
        len = (size_t)out->left;
    out->left -= len;
    return len > 0 && call.archive_write_data(out->archive, data, len) < 0 ? out_error(out) : 0;
}

static void out_done(struct tar_out *out)
{
    if (!out->archive)
        return;
    if (out->entry)
        call.archive_entry_free(out->entry);
    (void)call.archive_write_free(out->archive);
}

int cp_pull_tar(struct cp *cp, struct tree_pull *pull)
{
    static const struct cp_taker taker = { out_entry, out_data };
    cleanup_with(out_done) struct tar_out out = { .cp = cp };
    struct holt_error error = { .code = "" };
    int r;

    if (functions_load() != 0)
        return STATUS_HOLT;
    (void)signal(SIGPIPE, SIG_IGN); /* EPIPE is the exit status instead */
    out.archive = call.archive_write_new();
    out.entry = call.archive_entry_new();
    if (!out.archive || !out.entry)
        return report("no memory for the archive");
    (void)call.archive_write_set_format_pax(out.archive);
    r = call.archive_write_open_fd(out.archive, STDOUT_FILENO) != ARCHIVE_OK
            ? out_error(&out)
            : cp_take(cp, pull, &taker, &out, &error);
    if (r == 0 && call.archive_write_close(out.archive) != ARCHIVE_OK)
        r = out_error(&out);
    if (r < 0 && error.code[0])
        return report_holt_error(&error);
    if (r == -EPIPE)
        return STATUS_BROKEN_PIPE;
    return r < 0 ? report("write the archive: %s", strerror(-r)) : STATUS_OK;
}

/* --- from standard input ---------------------------------------------------------------------- */

struct tar_in {
    struct cp *cp;
    struct archive *archive;
    struct tree_push *push;
    char open[ENTRY_PATH_MAX + 1]; /* the directory that the receiver has open */
    struct holt_error error;
};

/* Stores a path of the archive without "./" and slashes at both ends; "" for the top. */
static int path_clean(const char *path, char ret[ENTRY_PATH_MAX + 1])
{
    size_t len;

    while (path[0] == '/' || (path[0] == '.' && (path[1] == '/' || path[1] == '\0')))
        path++;
    len = strlen(path);
    while (len > 0 && path[len - 1] == '/')
        len--;
    if (len > ENTRY_PATH_MAX)
        return -ENAMETOOLONG;
    memcpy(ret, path, len);
    ret[len] = '\0';
    return len == 0 || entry_path_is_below(ret) ? 0 : -EBADMSG;
}

static bool is_same_or_below(const char *path, const char *dir, size_t len)
{
    return strncmp(path, dir, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

static void parent_of(const char *path, char ret[ENTRY_PATH_MAX + 1])
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;

    memcpy(ret, path, len);
    ret[len] = '\0';
}

static int in_push(struct tar_in *in, const struct file_entry *entry)
{
    return tree_push_entry(in->push, entry, &in->error) < 0 ? -EPIPE : 0;
}

/* An archive may name files in any order and without their directories; the receiver wants every
 * directory before its contents and has only the latest ones open. */
static int parents_push(struct tar_in *in, const char *path)
{
    char part[ENTRY_PATH_MAX + 1];
    struct file_entry entry = {
        .path = part, .type = ENTRY_DIRECTORY, .mode = 0755, .target = "", .same_as = ""
    };
    int r = 0;

    for (const char *slash = strchr(path, '/'); r == 0 && slash; slash = strchr(slash + 1, '/')) {
        size_t len = (size_t)(slash - path);

        memcpy(part, path, len);
        part[len] = '\0';
        if (is_same_or_below(in->open, part, len))
            continue;
        r = in_push(in, &entry);
        memcpy(in->open, part, len + 1);
    }
    return r;
}

/* Writes a hole of a sparse file. */
static int in_hole(struct tar_in *in, la_int64_t len)
{
    static const char zeros[4096];

    while (len > 0) {
        size_t part = len < (la_int64_t)sizeof(zeros) ? (size_t)len : sizeof(zeros);

        if (tree_push_data(in->push, zeros, part, &in->error) < 0)
            return -EPIPE;
        len -= (la_int64_t)part;
    }
    return 0;
}

/* The last hole of a sparse file has no block behind it. */
static int in_data(struct tar_in *in, la_int64_t size)
{
    la_int64_t offset, at = 0;
    const void *data;
    size_t len;
    int r;

    while ((r = call.archive_read_data_block(in->archive, &data, &len, &offset)) == ARCHIVE_OK) {
        if (in_hole(in, offset - at) < 0)
            return -EPIPE;
        at = offset + (la_int64_t)len;
        cp_moved(in->cp, len);
        if (tree_push_data(in->push, data, len, &in->error) < 0)
            return -EPIPE;
    }
    return r == ARCHIVE_EOF ? in_hole(in, size - at) : -EBADMSG;
}

static int in_entry(struct tar_in *in, struct archive_entry *header)
{
    char path[ENTRY_PATH_MAX + 1], same_as[ENTRY_PATH_MAX + 1] = "";
    const char *hard = call.archive_entry_hardlink(header), *name, *link;
    struct file_entry entry = { .path = path, .target = "", .same_as = same_as };
    int r;

    name = call.archive_entry_pathname(header);
    link = call.archive_entry_symlink(header);
    entry.type = hard ? ENTRY_FILE : entry_type_of(call.archive_entry_filetype(header));
    r = name ? path_clean(name, path) : -EBADMSG;
    if (r == 0 && hard)
        r = path_clean(hard, same_as);
    if (r < 0 || path[0] == '\0')
        return r;
    if (entry.type != ENTRY_FILE && entry.type != ENTRY_DIRECTORY && entry.type != ENTRY_LINK) {
        cp_trouble(in->cp, path, "it is not a file, directory or symbolic link");
        return 0;
    }
    entry.mode = (uint32_t)call.archive_entry_perm(header);
    entry.uid = (uint32_t)call.archive_entry_uid(header);
    entry.gid = (uint32_t)call.archive_entry_gid(header);
    entry.mtime_s = call.archive_entry_mtime(header);
    entry.mtime_ns = (uint32_t)call.archive_entry_mtime_nsec(header);
    if (entry.type == ENTRY_LINK && link)
        entry.target = link;
    r = parents_push(in, path);
    if (r == 0)
        r = in_push(in, &entry);
    if (r < 0)
        return r;
    if (entry.type == ENTRY_DIRECTORY)
        memcpy(in->open, path, strlen(path) + 1);
    else
        parent_of(path, in->open);
    return entry.type == ENTRY_FILE && !hard ? in_data(in, call.archive_entry_size(header)) : 0;
}

static int in_all(struct tar_in *in)
{
    struct archive_entry *header;
    int r, next;

    while ((next = call.archive_read_next_header(in->archive, &header)) == ARCHIVE_OK ||
           next == ARCHIVE_WARN) {
        r = in_entry(in, header);
        if (r < 0)
            return r;
    }
    if (next != ARCHIVE_EOF)
        return -EBADMSG;
    return tree_push_finish(in->push, &in->error) < 0 ? -EPIPE : 0;
}

static void in_done(struct tar_in *in)
{
    if (in->archive)
        (void)call.archive_read_free(in->archive);
}

int cp_push_tar(struct cp *cp, struct tree_push *push)
{
    cleanup_with(in_done) struct tar_in in = { .cp = cp, .push = push };
    const char *why;
    int r;

    if (functions_load() != 0)
        return STATUS_HOLT;
    in.archive = call.archive_read_new();
    if (!in.archive)
        return report("no memory for the archive");
    (void)call.archive_read_support_format_tar(in.archive);
    (void)call.archive_read_support_filter_all(in.archive);
    r = call.archive_read_open_fd(in.archive, STDIN_FILENO, BLOCK_BYTES) != ARCHIVE_OK
            ? -EBADMSG
            : in_all(&in);
    if (r == -EPIPE)
        return report_holt_error(&in.error);
    why = r == -EBADMSG ? call.archive_error_string(in.archive) : NULL;
    return r < 0 ? report("read the archive from standard input: %s", why ? why : strerror(-r))
                 : STATUS_OK;
}
