// SPDX-License-Identifier: Apache-2.0
/* Requests that write into a sandbox: one file, or a tree. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/file_copy.h"
#include "base/files/tree_sink.h"
#include "base/io.h"
#include "base/random.h"
#include "guest/files/file_internal.h"

enum { TRIES = 8 };

/* One file being written. */
struct file_writer {
    int fd;
    char path[PATH_MAX];      /* final path */
    char temporary[PATH_MAX]; /* "": written in place */
    uint64_t offset;
    bool is_append;
    bool is_new;
    struct stat old; /* the file that it replaces */
};

static int open_temporary(struct file_writer *writer)
{
    size_t dir_len = (size_t)(strrchr(writer->path, '/') - writer->path);

    for (int i = 0; i < TRIES; i++) {
        int len = snprintf(writer->temporary, sizeof(writer->temporary), "%.*s/.holt-%016llx",
                           (int)dir_len, writer->path, (unsigned long long)random_u64());

        if (len >= (int)sizeof(writer->temporary))
            return -ENAMETOOLONG;
        writer->fd =
            open(writer->temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (writer->fd >= 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    writer->temporary[0] = '\0';
    return -errno;
}

/* Fails with -ESTALE if the file is not the one that the client has seen. */
static int writer_check_tag(const struct file_writer *writer, const struct file_request *request)
{
    char tag[ENTRY_TAG_SIZE] = "";
    struct file_entry entry;
    struct stat st;

    if (stat(writer->path, &st) == 0) {
        entry = entry_of(writer->path, &st);
        entry_tag(&entry, tag);
    }
    return strcmp(tag, request->to) == 0 ? 0 : -ESTALE;
}

/* Replaces the target of a symbolic link, not the link. The target keeps its mode and owner. */
static int writer_open_atomic(struct file_writer *writer, const struct file_request *request)
{
    char *real;

    if (request->flags & (FILE_APPEND | FILE_AT_OFFSET))
        return -EINVAL;
    if (request->flags & FILE_IF_MATCH && writer_check_tag(writer, request) < 0)
        return -ESTALE;
    writer->is_new = stat(writer->path, &writer->old) < 0;
    if (!writer->is_new && request->flags & FILE_EXCLUSIVE)
        return -EEXIST;
    if (!writer->is_new && !S_ISREG(writer->old.st_mode))
        return S_ISDIR(writer->old.st_mode) ? -EISDIR : -EINVAL;
    if (!writer->is_new) {
        real = realpath(writer->path, NULL);
        if (!real)
            return -errno;
        (void)snprintf(writer->path, sizeof(writer->path), "%s", real);
        free(real);
    }
    return open_temporary(writer);
}

static int writer_open_in_place(struct file_writer *writer, const struct file_request *request)
{
    bool keeps = request->flags & (FILE_APPEND | FILE_AT_OFFSET);
    mode_t mode = request->flags & FILE_HAS_MODE ? request->mode : 0644;
    struct stat st;

    if (stat(writer->path, &st) == 0 && !S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
    writer->fd = open(writer->path,
                      O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
                          (request->flags & FILE_EXCLUSIVE ? O_EXCL : 0) |
                          (request->flags & FILE_APPEND ? O_APPEND : 0),
                      mode);
    if (writer->fd < 0 || fstat(writer->fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    if (!keeps && st.st_size > 0 && ftruncate(writer->fd, 0) < 0)
        return -errno;
    writer->is_append = request->flags & FILE_APPEND;
    writer->offset = request->flags & FILE_AT_OFFSET ? request->offset : 0;
    if (request->flags & FILE_HAS_MODE && fchmod(writer->fd, request->mode) < 0)
        return -errno;
    return 0;
}

static int writer_open(struct file_writer *writer, const struct file_request *request)
{
    int r = worker_path(request->path, writer->path);
    size_t len = strlen(writer->path);

    if (r < 0)
        return r;
    if (len == 0 || writer->path[len - 1] == '/')
        return -EISDIR;
    if (request->flags & FILE_PARENTS)
        r = worker_make_parents(writer->path, 0755);
    if (r < 0)
        return r;
    return request->flags & FILE_ATOMIC ? writer_open_atomic(writer, request)
                                        : writer_open_in_place(writer, request);
}

static int writer_put(struct file_writer *writer, const char *data, size_t len)
{
    int r = writer->is_append ? write_all(writer->fd, data, len)
                              : pwrite_all(writer->fd, data, len, (off_t)writer->offset);

    writer->offset += len;
    return r;
}

static int writer_commit(struct file_writer *writer, const struct file_request *request)
{
    int r = request->flags & FILE_IF_MATCH ? writer_check_tag(writer, request) : 0;

    if (r < 0)
        return r;
    if (rename(writer->temporary, writer->path) < 0)
        return errno == EBUSY ? file_overwrite_at(writer->fd, AT_FDCWD, writer->path) : -errno;
    writer->temporary[0] = '\0';
    return 0;
}

/* The owner is set before the mode, because chown clears mode bits. A user who may not change the
 * owner keeps the file. */
static int writer_finish(struct file_writer *writer, const struct file_request *request)
{
    mode_t mode = request->flags & FILE_HAS_MODE ? request->mode
                  : writer->is_new               ? 0644
                                                 : writer->old.st_mode & 07777;

    int r = request->flags & FILE_HAS_META
                ? meta_replace(writer->fd, request->meta, request->meta_len)
                : 0;

    if (r < 0 || writer->temporary[0] == '\0')
        return r;
    if (!writer->is_new && fchown(writer->fd, writer->old.st_uid, writer->old.st_gid) < 0 &&
        errno != EPERM)
        return -errno;
    return fchmod(writer->fd, mode) < 0 ? -errno : writer_commit(writer, request);
}

static void writer_done(struct file_writer *writer)
{
    if (writer->temporary[0])
        (void)unlink(writer->temporary);
    writer->fd = fd_close(writer->fd);
}

static const char *writer_error_text(int r)
{
    if (r == -ESTALE)
        return "it has changed";
    return r == -EINVAL ? "it is not a regular file, or an atomic write appends or has an offset"
                        : NULL;
}

int file_write(struct worker *worker, const struct file_request *request)
{
    cleanup_with(writer_done) struct file_writer writer = { .fd = -EBADF };
    struct file_piece piece = { 0 };
    int r = writer_open(&writer, request), broken = 0;

    /* Watches of clients expect the change of the owner before the data. */
    if (r == 0 && worker->gives_ownership && fchown(writer.fd, worker->uid, worker->gid) < 0)
        r = -errno;
    if (r < 0)
        broken = worker_fail(worker, r, request->path, writer_error_text(r));
    while (broken == 0) {
        broken = worker_next(worker, &piece);
        if (broken < 0 || piece.type == FILE_END || piece.type == FILE_ABORT)
            break;
        if (piece.type != FILE_DATA)
            return -EPROTO;
        if (r == 0) {
            r = writer_put(&writer, piece.data, piece.len);
            if (r < 0)
                broken = worker_fail(worker, r, request->path, NULL);
        }
    }
    if (broken < 0 || r < 0)
        return broken;
    if (piece.type == FILE_ABORT)
        return worker_fail(worker, -ECANCELED, request->path, NULL);
    r = writer_finish(&writer, request);
    if (r < 0)
        return worker_fail(worker, r, request->path, writer_error_text(r));
    return worker_reply_entry(worker, writer.path, request->path, true);
}

static int push_piece(struct tree_sink *sink, const struct file_piece *piece, char *ret_path)
{
    struct file_entry entry;

    if (piece->type == FILE_DATA)
        return tree_sink_data(sink, piece->data, piece->len);
    if (!file_get_entry(piece, &entry))
        return -EPROTO;
    (void)snprintf(ret_path, ENTRY_PATH_MAX + 1, "%s", entry.path);
    return tree_sink_entry(sink, &entry);
}

DEFINE_CLEANUP(tree_sink_free, struct tree_sink *);

static int push_open(const struct file_request *request, struct tree_sink **ret)
{
    const struct tree_sink_options options = {
        .keeps_owner = request->flags & FILE_KEEP_OWNER,
        .replaces_links = true,
    };
    char path[PATH_MAX];
    int fd, r = worker_path(request->path, path);

    if (r == 0 && request->flags & FILE_PARENTS) {
        r = worker_make_parents(path, 0755);
        if (r == 0 && mkdir(path, 0755) < 0 && errno != EEXIST)
            r = -errno;
    }
    if (r < 0)
        return r;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    *ret = tree_sink_new(fd, &options);
    return 0;
}

static const char *push_error_text(int r)
{
    return r == -EEXIST ? "a pipe, socket or device has this name" : NULL;
}

int file_push(struct worker *worker, const struct file_request *request)
{
    cleanup_with(tree_sink_free_slot) struct tree_sink *sink = NULL;
    char path[ENTRY_PATH_MAX + 1] = "";
    struct file_piece piece = { 0 };
    int r = push_open(request, &sink), broken = 0;

    if (r < 0)
        broken = worker_fail(worker, r, request->path, NULL);
    while (broken == 0) {
        broken = worker_next(worker, &piece);
        if (broken < 0 || piece.type == FILE_END || piece.type == FILE_ABORT)
            break;
        if (r < 0)
            continue;
        r = push_piece(sink, &piece, path);
        if (r == -EPROTO)
            return r;
        if (r < 0)
            broken = worker_fail(worker, r, path, push_error_text(r));
    }
    if (broken < 0 || r < 0)
        return broken;
    if (piece.type == FILE_ABORT)
        return worker_fail(worker, -ECANCELED, request->path, NULL);
    r = tree_sink_finish(sink);
    if (r < 0)
        return worker_fail(worker, r, path, NULL);
    r = file_put_number(&worker->out, FILE_END, 0);
    return r < 0 ? r : worker_flush(worker);
}
